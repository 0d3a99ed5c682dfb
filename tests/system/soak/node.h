// The node that the soak runs on: its slots, the calls, railheadd, and what was wrong.
//
// A slot is a device for one pod at a time: a VF by its address, or a slot of late binding.
// Every call is watched: it has to end within kCallLimit, with success or with a CNI code and
// a message. Which pod has which address is kept beside the store, so that an address given
// twice, or before its reuse delay is over, is seen.
// Threads: calls and reports from any; railheadd's process from the thread that made the node.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "netns/base/files.h"
#include "tests/support/process.h"
#include "tests/system/crash/cni_calls.h"

namespace railhead::soak {

using Clock = std::chrono::steady_clock;

inline constexpr std::chrono::seconds kCallLimit{180};
inline constexpr std::chrono::seconds kLimit{120};  // for all else that is waited for
inline constexpr std::chrono::milliseconds kPoll{10};

struct Slot {
  std::string device;  // BDF, or the id of a slot of late binding
  bool late = false;
  // Of hardware: the host's name of it, to which it is renamed when its driver was bound again.
  std::string host_name;
  bool unnamed = false;  // it could not be renamed yet

  int number = 0;  // of the pod; 0: there was none
  crash::Pod pod;
  std::string config;
  std::string nic;                            // the name in the pod, as far as it is known
  bool attached = false;                      // ADD said so, and nothing has ended it
  bool touched = false;                       // the pod changed what CHECK looks at
  std::string result;                         // of ADD
  std::vector<std::string> addresses;         // that it holds
  std::optional<Clock::time_point> released;  // its addresses can have been released since
};

struct NodeSetting {
  crash::Plugin plugin;  // DEVICE and SETTINGS in its configuration are replaced
  std::vector<std::string> daemon;
  std::string log;  // of railheadd
  std::string netns_directory;
  bool hardware = false;
  std::chrono::seconds reuse_delay{0};
  std::chrono::seconds patience{kLimit};     // until everything is as before
  std::optional<crash::Suppressed> planted;  // what every DEL leaves out: it has to be found
};

struct Answer {
  bool succeeded = false;
  bool killed = false;
  int code = 0;
  std::string output;
};

// The process is killed after a time or at a call.
struct Killing {
  std::optional<std::chrono::milliseconds> after;
  std::optional<crash::CallPoint> at;
};

class Node {
 public:
  explicit Node(NodeSetting setting);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  Answer Call(const std::string& command, const Slot& slot, const Killing& killing = {});
  Answer CallWith(const std::string& config, const std::string& command, const crash::Pod& pod,
                  const Killing& killing = {});
  // How many system calls each process of an undisturbed ADD and DEL makes.
  Result<void> Measure(const Slot& slot);
  [[nodiscard]] crash::CallPoint PointAt(const std::string& command, std::uint64_t luck) const;

  // What ADD gave; and that it may be given to another from `when` on, after its reuse delay.
  void Hold(Slot& slot, const std::string& output);
  void LetGo(Slot& slot, Clock::time_point when);

  void Wrong(const std::string& what);
  void Count(const std::string& what);

  // railheadd. Two at most.
  void StartDaemon();
  void SignalDaemon(std::size_t number, int signal) const;
  void KillDaemon(std::size_t number);
  // Reaps what ended; a railheadd among it that nobody killed is wrong. Whether anything else than
  // railheadd is still running: what plugins leave behind becomes this process's child.
  bool Reap();
  Result<void> AwaitDaemon();
  [[nodiscard]] const std::vector<std::unique_ptr<testing::Process>>& daemons() const { return daemons_; }

  [[nodiscard]] const NodeSetting& setting() const { return setting_; }
  [[nodiscard]] Root root() const { return Root(setting_.plugin.root); }
  [[nodiscard]] const std::map<std::string, int>& counts() const { return counts_; }
  [[nodiscard]] const std::map<int, int>& codes() const { return codes_; }
  // The longest calls, in seconds.
  [[nodiscard]] const std::multimap<double, std::string>& longest() const { return longest_; }
  [[nodiscard]] const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  struct Watched {
    Clock::time_point deadline;
    pid_t pid = 0;
    std::string what;
  };
  void Watch();
  void ReapDaemons();
  void Judge(const std::string& what, const crash::TraceResult& done, Answer& answer);

  const NodeSetting setting_;
  const crash::CniCalls calls_;
  std::map<std::string, std::vector<int>> lengths_;
  std::vector<std::unique_ptr<testing::Process>> daemons_;

  std::mutex mutex_;
  std::map<std::string, std::string> holders_;  // of addresses: ids of pods
  std::map<std::string, std::pair<std::string, Clock::time_point>> cooling_down_;  // the last holder, since
  std::map<std::string, int> counts_;
  std::map<int, int> codes_;
  std::multimap<double, std::string> longest_;
  std::vector<std::string> wrong_;
  std::map<int, Watched> watched_;
  int next_watched_ = 0;
  bool over_ = false;
  std::condition_variable changed_;
  std::thread watchdog_;
};

// Of this process.
std::vector<pid_t> Children();
// A number of /proc/PID/status: "VmRSS", in kB.
long FieldOf(const std::string& status, const std::string& name);

// A shell's command line; whether it succeeded.
bool Shell(const std::string& command);

// Polls until it holds; false: not within the limit.
template <typename Condition>
bool Await(const Condition& condition, std::chrono::milliseconds limit = kLimit) {
  for (const auto deadline = Clock::now() + limit; !condition();) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace railhead::soak
