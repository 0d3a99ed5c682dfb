// A node on which tests kill railheadd: the program itself, a fake sysfs, kubelet's stand-in and two pods.
//
// It has two resources with seven VFs each: one of devices and one of slots (late binding). With a
// config.json of sriov-network-device-plugin it has one, whose devices CDI names. railheadd logs to a file,
// which a failure shows.
// Threads: one; the tracer has a thread of its own per process. Errors: kTimeout with the
// end of railheadd's log.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/system/crash/cni_calls.h"
#include "tests/system/crash/tracer.h"

namespace railhead::crash {

inline constexpr const char* kEarly = "railhead.io/early";
inline constexpr const char* kLate = "railhead.io/late";
inline constexpr const char* kMore = "railhead.io/more";
inline constexpr const char* kNamed = "intel.com/named";

struct DaemonSetting {
  std::string programs;  // directory
  std::string root;      // with a sysfs of pf0 and pf1 and their VFs
  Pod first;
  Pod other;
  int vfs = 7;  // of each PF
};

// An allocation that kubelet made.
struct Given {
  std::string resource;
  std::vector<std::string> ids;  // sorted
};

class DaemonNode {
 public:
  explicit DaemonNode(DaemonSetting setting);
  DaemonNode(const DaemonNode&) = delete;
  DaemonNode& operator=(const DaemonNode&) = delete;
  ~DaemonNode();

  // Makes a node that was never used, with a running kubelet.
  Result<void> Reset();
  // Removes what a reboot removes: /run and /var/run.
  Result<void> LoseRun();
  // Sets all file times back, so that railheadd treats no file as new.
  void LetAnHourPass() const;

  // Writes fabric.json. `late` is the name of the resource with slots.
  Result<void> Configure(const std::string& late);
  // From now on railheadd follows a directory (--follow-config), and Configure() writes there.
  Result<void> Follow();
  // Writes config.json instead, for --use-cdi.
  Result<void> ConfigureNamed();
  void SetCarrier(bool on);

  Result<void> StartDaemon(std::function<bool(const Change&)> kill_before = {});
  void Signal(int signal) const;
  void KillDaemon();
  // Returns the status of waitpid.
  Result<int> AwaitEnd();
  [[nodiscard]] bool IsRunning() const { return daemon_.joinable() && !ended_; }

  // Polls; kTimeout names `what`. Ends at once, with kConflict, when railheadd has ended.
  Result<void> Await(const std::string& what, const std::function<bool()>& condition) const;
  // Waits until railheadd has advertised everything configured and finished its start. What a killed one has
  // left behind, in kubelet and in files, does not count.
  [[nodiscard]] Result<void> AwaitReady() const;

  Result<void> Allocate(const std::string& resource, std::size_t count);
  // Writes kubelet's checkpoint: the first allocation belongs to the first pod, the next to the other.
  [[nodiscard]] Result<void> WriteCheckpoint() const;

  [[nodiscard]] Result<TraceResult> Cni(const std::string& command, const Pod& pod,
                                        const Tracing& tracing = {}) const;
  testing::DeviceManager& kubelet() { return *kubelet_; }
  void RestartKubelet();

  [[nodiscard]] const DaemonSetting& setting() const { return setting_; }
  [[nodiscard]] const Root& root() const { return root_; }
  [[nodiscard]] std::string KubeletDirectory() const { return root_.Path(directory_); }
  [[nodiscard]] const std::vector<Given>& given() const { return given_; }
  // The expected number of each resource's devices, and of the healthy ones.
  struct Expected {
    std::size_t devices = 0;
    std::size_t healthy = 0;
  };
  [[nodiscard]] const std::map<std::string, Expected>& expected() const { return expected_; }
  void Expect(const std::string& resource, Expected expected) { expected_[resource] = expected; }
  // Whether kubelet has this railheadd's devices, and no other's.
  [[nodiscard]] bool IsAsExpected() const;
  [[nodiscard]] bool IsNamed() const { return named_; }
  [[nodiscard]] std::string EndOfLog() const;

 private:
  [[nodiscard]] bool IsServed(const std::string& resource) const;
  // Beside the root, so that logging does not count as a change.
  [[nodiscard]] std::string LogPath() const { return root_.prefix() + ".log"; }

  const DaemonSetting setting_;
  const Root root_;
  const CniCalls calls_;
  void RetireKubelet();

  // Each kubelet has its own directory, since gRPC removes a server's path at its end.
  std::string directory_;
  int kubelets_ = 0;
  std::unique_ptr<testing::DeviceManager> kubelet_;
  // Earlier kubelets. They wait for plugins that were killed before they could be dialled.
  std::vector<std::thread> ending_;
  std::vector<Given> given_;
  std::map<std::string, Expected> expected_;
  bool named_ = false;
  bool follows_ = false;
  std::thread daemon_;
  std::atomic<bool> ended_{false};
  std::atomic<pid_t> pid_{0};
  Result<TraceResult> result_;
};

}  // namespace railhead::crash
