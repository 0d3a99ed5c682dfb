// A node with three resources, kubelet's device manager on it, and what must hold whatever was
// restarted: no device lost, doubled or unhealthy, allocated ones stay, one live server each.
//
// Threads: At() hooks come from the stand-in's; everything else from the test's.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/daemon/daemon_process.h"
#include "tests/support/kubelet/device_manager.h"

namespace railhead::testing {

class RestartNode : public KubeletTest {
 protected:
  static constexpr const char* kRail0 = "a.io/rail0";   // NCCL configuration required
  static constexpr const char* kRail1 = "a.io/rail1";   // NCCL configuration required
  static constexpr const char* kPlain = "b.org/plain";  // without: no PreStartContainer

  RestartNode();

  // From now on kubelet finds the sockets of railheadd, instead of being called.
  void UseRegistry();
  std::unique_ptr<Process> RunDaemon(std::vector<std::string> more = {});

  // A stand-in that looks at all that railheadd says.
  std::unique_ptr<DeviceManager> MakeKubelet(KubeletOptions options = {});

  // Every resource has all of its devices, and one stream.
  bool IsWhole(DeviceManager* kubelet) const;
  // Waits for that; then the rest must hold at once.
  void ExpectWhole(DeviceManager* kubelet, const std::string& when);

  // A pod of one or two containers that want some of some resources; "" when nothing is free. The
  // pod is removed again when it is refused.
  std::string AdmitSomePod(DeviceManager* kubelet);
  void RemoveSomePod(DeviceManager* kubelet);
  [[nodiscard]] std::size_t Free(const std::string& resource) const;

  unsigned Random(unsigned below);

  // Who asks kubelet again without being dropped has two streams.
  int most_streams_ = 1;

  std::map<std::string, std::set<std::string>> devices_;  // of each resource
  unsigned seed_;
  std::mt19937 random_;

 private:
  struct Pod {
    std::vector<PodContainer> containers;
    std::map<std::string, std::map<std::string, std::set<std::string>>> has;  // container, resource
  };

  void Check(const TraceEvent& event);
  void ExpectPods(DeviceManager* kubelet, const std::string& when);
  void ExpectOneServerEach(DeviceManager* kubelet, const std::string& when);

  std::map<std::string, Pod> pods_;  // that were admitted
  int pods_so_far_ = 0;
  std::mutex mutex_;
  std::set<std::string> wrong_lists_;
};

}  // namespace railhead::testing
