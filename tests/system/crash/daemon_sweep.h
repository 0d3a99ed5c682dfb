// railheadd killed at every change that it makes, and started again on what it left.
//
//   start     on a node that was never used
//   reboot    with devices given before, whose files below /run are gone
//   named     the same with config.json and CDI specs of railheadd's own
//   register  kubelet starts again
//   allocate  kubelet prefers and allocates devices
//   bind      two pods' ADDs ask for devices in place of slots, at the same time
//   health    a PF loses its carrier
//   reconcile an ADD was killed, and railheadd restores what it left
//   reload    another configuration: a resource goes, another one comes
//   stop      SIGTERM
//
// A change is a call that makes, writes, renames or removes a file, binds or connects a
// socket, or sends something (daemon_changes.h), of any thread. It is killed before the N-th
// of them, for every N that an undisturbed run has; then started anew, undisturbed, and what
// was interrupted is done again. Then everything of daemon_check.h has to hold.
// Threads: one. The process must have called Adopt().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/system/crash/daemon_node.h"

namespace railhead::crash {

struct Scenario {
  const char* name;
  bool from_start;                       // changes count from the program's first, else from act()
  Result<void> (*prepare)(DaemonNode&);  // before railheadd is started; may start it and kill it
  Result<void> (*act)(DaemonNode&);      // is interrupted: fails then
  Result<void> (*again)(DaemonNode&);    // what must work afterwards, without act() or with it
};

const std::vector<Scenario>& DaemonScenarios();

// One kill and what followed.
struct DaemonTry {
  int at = 0;
  std::string before;  // empty: railheadd did not come that far
  std::chrono::milliseconds took{0};
  Result<void> outcome;
};

struct DaemonTally {
  int possible = 0;  // changes of an undisturbed run
  int tried = 0;
  int killed = 0;  // of them: railheadd came that far
  int exceptions = 0;
  std::string first;  // exception, as text
};

class DaemonSweep {
 public:
  using Watch = std::function<void(const DaemonTry&)>;

  DaemonSweep(DaemonSetting setting, std::uint64_t seed, Watch watch)
      : node_(std::move(setting)), random_(seed), watch_(std::move(watch)) {}

  // At least `percent` of the changes, and more until `time` is over; at 100 also those that
  // an undisturbed run has not. An error: it does not even work undisturbed.
  Result<DaemonTally> Run(const Scenario& scenario, double percent, std::chrono::seconds time);

 private:
  struct Kill {
    int at = 0;  // 0: nowhere
    std::atomic<bool> armed{false};
    std::atomic<int> seen{0};
    std::atomic<bool> done{false};
    std::string what;  // valid when done
    bool operator()(const Change& change);
  };
  DaemonTry Try(const Scenario& scenario, int at);
  Result<void> Disturb(const Scenario& scenario, Kill* kill);
  Result<void> Recover(const Scenario& scenario, bool killed);
  Result<void> Finish();

  DaemonNode node_;
  std::mt19937_64 random_;
  const Watch watch_;
};

}  // namespace railhead::crash
