// A node with three resources and kubelet's device manager, and what must hold after any restart. No device
// is lost, doubled or unhealthy; allocated devices stay allocated; each resource has one live server.
//
// Threads: At() hooks run on the stand-in's threads, everything else on the test's.
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

  // Makes a stand-in for kubelet that checks everything that railheadd sends.
  std::unique_ptr<DeviceManager> MakeKubelet(KubeletOptions options = {});

  // Waits until nothing is Unserved() and each of railheadd's sockets has its resource. Then the pods must
  // have their devices at once.
  void ExpectWhole(DeviceManager* kubelet, const std::string& when);

  // Admits a pod whose one or two containers want devices of some resources; "" when no device is free. A
  // refused pod is removed again.
  std::string AdmitSomePod(DeviceManager* kubelet);
  void RemoveSomePod(DeviceManager* kubelet);
  [[nodiscard]] std::size_t Free(const std::string& resource) const;

  unsigned Random(unsigned below);

  // The resource that does not have all its devices, healthy and from one server that listens; "": none. What
  // kubelet still believes of a killed server does not count.
  std::string Unserved(DeviceManager* kubelet) const;

  // A plugin that registers again before kubelet drops it has two streams.
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
  std::string Fault(DeviceManager* kubelet) const;

  std::map<std::string, Pod> pods_;  // the admitted pods
  int pods_so_far_ = 0;
  std::mutex mutex_;
  std::set<std::string> wrong_lists_;
};

}  // namespace railhead::testing
