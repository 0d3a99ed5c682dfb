// The node of the soak: its slots, the calls, railheadd, and the faults.
//
// A slot is a device for one pod at a time: a VF by its address, or a slot of late binding. The node watches
// every call: it has to end within kCallLimit, with success or with a CNI code and a message. A later one is
// killed. A killed call or a Step that does not end in time ends the program with exit status 1. Standard
// error then names what it waited for, and where each process waits.
//
// The node itself remembers each pod's addresses. So it notices an address that is given twice, or before the
// end of its reuse delay.
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

#include "netns/base/root.h"
#include "tests/support/process.h"
#include "tests/system/crash/cni_calls.h"

namespace railhead::soak {

using Clock = std::chrono::steady_clock;

inline constexpr std::chrono::seconds kCallLimit{180};
inline constexpr std::chrono::seconds kKilledLimit{60};  // until a killed call has ended
inline constexpr std::chrono::seconds kStepLimit{600};
inline constexpr std::chrono::seconds kLimit{120};  // for all other waits
inline constexpr std::chrono::milliseconds kPoll{10};

struct Slot {
  std::string device;  // BDF, or the id of a slot of late binding
  bool late = false;
  // For hardware: the host's name, which it gets again after its driver was bound again.
  std::string host_name;
  bool unnamed = false;  // it could not be renamed yet

  int number = 0;  // of the pod; 0: the slot has had no pod
  crash::Pod pod;
  std::string config;
  std::string nic;                            // the name in the pod, if known
  bool attached = false;                      // ADD succeeded, and nothing has ended the attachment
  bool touched = false;                       // the pod changed what CHECK looks at
  std::string result;                         // of ADD
  std::vector<std::string> addresses;         // that it holds
  std::optional<Clock::time_point> released;  // when its addresses may have been released
};

struct NodeSetting {
  crash::Plugin plugin;  // DEVICE and SETTINGS in its configuration are replaced
  std::vector<std::string> daemon;
  std::string log;  // of railheadd
  std::string netns_directory;
  bool hardware = false;
  std::chrono::seconds reuse_delay{0};
  std::chrono::seconds patience{kLimit};     // until everything is as before
  std::optional<crash::Suppressed> planted;  // requests that every DEL omits; the soak has to find this
  std::chrono::milliseconds call_limit{kCallLimit};
  std::chrono::milliseconds killed_limit{kKilledLimit};
  std::chrono::milliseconds step_limit{kStepLimit};
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
  // Counts the system calls of each process of an undisturbed ADD and DEL.
  Result<void> Measure(const Slot& slot);
  [[nodiscard]] crash::CallPoint PointAt(const std::string& command, std::uint64_t luck) const;

  // Work that has to end within the limit of steps, while the object lives.
  class Step {
   public:
    Step(Node& node, const std::string& what);
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step();

   private:
    Node& node_;
    int number_;
  };

  // Records ADD's addresses; and that another pod may get them from `when` on, after the reuse delay.
  void Hold(Slot& slot, const std::string& output);
  void LetGo(Slot& slot, Clock::time_point when);

  void Wrong(const std::string& what);
  void Count(const std::string& what);

  // Starts railheadd. At most two run at once.
  void StartDaemon();
  void SignalDaemon(std::size_t number, int signal) const;
  void KillDaemon(std::size_t number);
  // Reaps ended processes. A railheadd that ended without a kill is a fault. Returns whether a process other
  // than railheadd is still running: orphans of plugins become this process's children.
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
    pid_t pid = 0;  // to kill when it is late; 0: none
    std::string what;
    Clock::time_point start = Clock::now();
  };
  int BeginWatch(Watched watched);
  void EndWatch(int number);
  void Watch();
  void Late(Watched& watched);
  void ShowLate(const Watched& watched) const;
  void ReapDaemons();
  void Judge(const std::string& what, const crash::TraceResult& done, Answer& answer);

  const NodeSetting setting_;
  const crash::CniCalls calls_;
  std::map<std::string, std::vector<int>> lengths_;
  std::vector<std::unique_ptr<testing::Process>> daemons_;

  std::mutex mutex_;
  std::map<std::string, std::string> holders_;                                     // pod ids by address
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

// Runs a shell command. Returns whether it succeeded.
bool Shell(const std::string& command);

// Polls until the condition holds; false: it did not within the limit.
template <typename Condition>
bool Await(const Condition& condition, std::chrono::milliseconds limit = kLimit) {
  for (const auto deadline = Clock::now() + limit; !condition();) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace railhead::soak
