// Kills railheadd at every change that it makes, and starts it again on the remains.
//
//   `start`: on a node that was never used.
//   `reboot`: with earlier allocations, whose files below /run have disappeared.
//   `named`: the same with config.json and railheadd's own CDI specs.
//   `register`: kubelet starts again.
//   `allocate`: kubelet prefers and allocates devices.
//   `bind`: two pods' ADDs ask for devices in place of slots, at the same time.
//   `health`: a PF loses its carrier.
//   `reconcile`: an ADD was killed, and railheadd restores its devices.
//   `reload`: another configuration, which replaces one resource by another.
//   `follow`: the same by the directory that railheadd follows.
//   `stop`: SIGTERM.
//
// A change is a call of any thread that makes, writes, renames or removes a file, binds or connects a socket,
// or sends something (daemon_changes.h). The test kills railheadd before its N-th change, for every N of an
// undisturbed run. Then it is started again, undisturbed, and the interrupted action is repeated. Then
// everything of daemon_check.h has to hold.
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
  Result<void> (*act)(DaemonNode&);      // is interrupted, and then fails
  Result<void> (*again)(DaemonNode&);    // must work afterwards, whether act() worked or not
};

const std::vector<Scenario>& DaemonScenarios();

// One kill and what followed.
struct DaemonTry {
  int at = 0;
  std::string before;  // empty: railheadd did not get that far
  std::chrono::milliseconds took{0};
  Result<void> outcome;
};

struct DaemonTally {
  int possible = 0;  // changes of an undisturbed run
  int tried = 0;
  int killed = 0;  // of `possible`: railheadd got that far
  int exceptions = 0;
  std::string first;  // exception, as text
};

class DaemonSweep {
 public:
  using Watch = std::function<void(const DaemonTry&)>;

  DaemonSweep(DaemonSetting setting, std::uint64_t seed, Watch watch)
      : node_(std::move(setting)), random_(seed), watch_(std::move(watch)) {}

  // Tries at least `percent` of the changes, and more until `time` is over. At 100 it also tries changes
  // beyond those of an undisturbed run. An error: an undisturbed run fails.
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
