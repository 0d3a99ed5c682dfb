// AdmissionHints: which accelerators the pod that kubelet is admitting has, or most likely gets.
//
// GetPreferredAllocation names no pod. kubelet asks each plugin of a container in random
// order, so in about half of all cases the accelerators have been given out before: then the
// pod-resources API (since Kubernetes 1.34) shows a container that has accelerators, not yet
// this resource, and that was not there when it was last looked at. Otherwise the pod gets
// some of those that nobody has. Both are guesses; a pool with late binding needs none.
// Ownership: shares the view. Threads: thread-safe; For() waits for `given` at most.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/topology/accelerator_ids.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/services/kubelet/kubelet_client.h"
#include "netns/base/result.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead {

class AdmissionHints {
 public:
  using Clock = std::chrono::steady_clock;
  // Everything that kubelet has given out. Must have an end of its own: an admission waits.
  using Given = std::function<Result<std::vector<GivenDevices>>()>;

  explicit AdmissionHints(Given given) : given_(std::move(given)) {}

  // After every look at the node: what there is, and who has it by now. Either may be nullptr.
  void Update(std::shared_ptr<const Topology> topology, std::shared_ptr<const AcceleratorIds> ids,
              Clock::time_point now = Clock::now());

  // PreferHints::paths. Empty when nothing speaks for one NIC.
  std::map<PciAddress, std::vector<PciPath>> For(const ResourcePool& pool,
                                                 Clock::time_point now = Clock::now());

 private:
  struct Container {
    std::vector<PciAddress> accelerators;
    std::vector<std::string> resources;
  };
  using Containers = std::map<std::string, Container>;  // by NAMESPACE/POD/CONTAINER

  [[nodiscard]] Containers ContainersOf(const std::vector<GivenDevices>& given, const AcceleratorIds& ids,
                                        AcceleratorIds::Effort effort) const;
  void Remember(const Containers& containers, Clock::time_point seen);
  [[nodiscard]] std::vector<PciAddress> Expected(const Containers& containers, const std::string& resource,
                                                 Clock::time_point now) const;

  const Given given_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<const AcceleratorIds> ids_;
  std::map<std::string, Clock::time_point> first_seen_;  // of containers with accelerators
};

}  // namespace railhead
