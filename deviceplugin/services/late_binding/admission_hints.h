// AdmissionHints: the accelerators that the pod which kubelet is admitting has, or most likely gets.
//
// GetPreferredAllocation does not name the pod. In about half of all cases the accelerators are allocated
// already, since kubelet calls the plugins of a container in random order. Then the pod-resources API (since
// Kubernetes 1.34) shows a new container that has accelerators, but not yet this resource. Otherwise the pod
// gets some of the free accelerators. Both are guesses; a pool with late binding needs none.
// Ownership: shares the view. Threads: thread-safe; For() waits for `allocated` at most.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/topology/accelerator_ids.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/services/kubelet/pod_resources.h"
#include "netns/base/mutex.h"
#include "netns/base/result.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::late_binding {

class AdmissionHints {
 public:
  using Clock = std::chrono::steady_clock;
  // All devices that kubelet has allocated. Needs a time limit of its own: an admission waits.
  using AllocatedSource = std::function<Result<std::vector<kubelet::AllocatedDevices>>()>;

  explicit AdmissionHints(AllocatedSource allocated) : allocated_(std::move(allocated)) {}

  // After every discovery of the node. Either may be nullptr. Waits for `allocated`, and for the driver of
  // the accelerators.
  void Update(std::shared_ptr<const topology::Topology> topology,
              std::shared_ptr<const topology::AcceleratorIds> ids, Clock::time_point now = Clock::now());

  // PreferHints::paths. Empty without a reason to prefer a NIC.
  std::map<PciAddress, std::vector<PciPath>> For(const resources::ResourcePool& pool,
                                                 Clock::time_point now = Clock::now());

 private:
  struct Container {
    std::vector<PciAddress> accelerators;
    std::vector<std::string> resources;
  };
  using Containers = std::map<std::string, Container>;  // by NAMESPACE/POD/CONTAINER

  [[nodiscard]] Containers ContainersOf(const std::vector<kubelet::AllocatedDevices>& allocated,
                                        const topology::AcceleratorIds& ids,
                                        topology::AcceleratorIds::Effort effort) const;
  void Remember(const Containers& containers, Clock::time_point seen) RH_REQUIRES(mutex_);
  [[nodiscard]] std::vector<PciAddress> Expected(const Containers& containers, const std::string& resource,
                                                 Clock::time_point now) const RH_REQUIRES(mutex_);

  const AllocatedSource allocated_;
  mutable Mutex mutex_;
  std::shared_ptr<const topology::Topology> topology_ RH_GUARDED_BY(mutex_);
  std::shared_ptr<const topology::AcceleratorIds> ids_ RH_GUARDED_BY(mutex_);
  std::map<std::string, Clock::time_point> first_seen_
      RH_GUARDED_BY(mutex_);  // of containers with accelerators
};

}  // namespace railhead::late_binding
