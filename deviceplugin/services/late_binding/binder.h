// Binder: binds each of a pod's slots to a device, when the pod's sandbox is made.
//
// At that time kubelet's checkpoint names the pod's accelerators. If a DRA driver allocated them, kubelet's
// pod-resources API does. Prefer() (node/resources/preferred.h) chooses the best of the free devices: one per
// rail, near the accelerators. A slot of a sandbox that is made again may get its old device, which ADD then
// waits for, or another one.
//
// The binding is durable once ADD has written its journal entry. Until then, for a minute or until kubelet
// has dropped the pod, the device is reserved for its slot in memory. If the daemon dies in between, two ADDs
// can get the same device. The second one finds it locked or in use, and kubelet tries it again. A pod that
// the checkpoint does not have, or without accelerators, is bound in the rails' order.
// Threads: thread-safe. Files and kubelet are read without a lock, so Update() and other requests never wait
// for them. Only the choice and the reservation are serialized.
// Errors: kInvalid for invalid slots; kPermission for slots that kubelet allocated to another pod; kBusy when
// no device is free, and before the first Update().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/state/bind_protocol.h"
#include "cni/state/kubelet_checkpoint.h"
#include "deviceplugin/node/resources/preferred.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/topology/accelerator_ids.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/services/kubelet/pod_resources.h"
#include "deviceplugin/services/late_binding/bind_server.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::late_binding {

// The state of this node as of the last discovery.
struct BindingView {
  std::vector<std::shared_ptr<const resources::ResourcePool>> pools;  // of devices, not of slots
  std::set<std::string> unhealthy;
  std::shared_ptr<const topology::Topology> topology;            // nullptr: unknown
  std::shared_ptr<const topology::AcceleratorIds> accelerators;  // of the topology
};

class Binder {
 public:
  using Clock = std::chrono::steady_clock;

  // The devices that kubelet has allocated to pods, DRA drivers' devices too.
  using AllocatedSource = SharedAnswer::Source;

  explicit Binder(Root root, AllocatedSource allocated = {})
      : root_(std::move(root)), allocated_(std::move(allocated)) {}

  void Update(BindingView view);
  Result<Bindings> Bind(const BindRequest& request, Clock::time_point now = Clock::now());

 private:
  struct Reservation {
    std::string device;
    Clock::time_point until;
    std::string pod_uid;  // "" when kubelet's checkpoint did not have the pod
    std::uint64_t number = 0;
  };
  using Checkpoint = std::vector<ContainerDevices>;

  // A pool of the request, from files and kubelet.
  struct PoolState {
    std::shared_ptr<const resources::ResourcePool> pool;
    std::vector<std::string> slots;
    // By usable device: its slot. "": a pod has it without a slot. nullopt: free.
    std::map<std::string, std::optional<std::string>> holders;
    std::map<PciAddress, std::vector<PciPath>> paths;
  };
  struct NodeState {
    std::shared_ptr<const BindingView> view;
    Checkpoint checkpoint;
    std::vector<PoolState> pools;
    // Reservations up to this one are older than the checkpoint.
    std::uint64_t reservations = 0;
  };

  [[nodiscard]] Result<NodeState> ReadNodeState(const BindRequest& request);
  [[nodiscard]] Result<std::map<std::string, std::vector<std::string>>> SlotsByResource(
      const BindRequest& request) const;
  [[nodiscard]] Result<std::vector<PciAddress>> AcceleratorsOf(const BindRequest& request,
                                                               const NodeState& state);
  [[nodiscard]] Result<PoolState> ReadPoolState(const BindingView& view, const std::string& resource,
                                                std::vector<std::string> slots,
                                                const std::vector<PciAddress>& accelerators) const;
  Result<Bindings> Reserve(const BindRequest& request, const NodeState& state, Clock::time_point now);
  [[nodiscard]] Result<void> Choose(const PoolState& pool, Bindings* bindings) const;
  [[nodiscard]] Result<void> WriteInfos(const NodeState& state, const Bindings& bindings) const;
  void ForgetReservations(const NodeState& state, Clock::time_point now);
  [[nodiscard]] bool IsReserved(const std::string& device, const std::set<std::string>& own) const;

  const Root root_;
  SharedAnswer allocated_;
  std::mutex mutex_;
  std::shared_ptr<const BindingView> view_ = std::make_shared<const BindingView>();
  std::map<std::string, Reservation> reserved_;  // by slot
  std::uint64_t reservations_ = 0;               // so far
};

// The paths from a pool's NICs to some accelerators, for Prefer().
// Threads: pure function.

// By PF, in the order of `accelerators`. Empty without accelerators.
std::map<PciAddress, std::vector<PciPath>> PathsTo(const resources::ResourcePool& pool,
                                                   const topology::Topology& topology,
                                                   const std::vector<PciAddress>& accelerators);

// AdmissionHints: the accelerators that the pod which kubelet is admitting has, or most likely gets.
//
// GetPreferredAllocation does not name the pod. In about half of all cases the accelerators are allocated
// already, since kubelet calls the plugins of a container in random order. Then the pod-resources API (since
// Kubernetes 1.34) shows a new container that has accelerators, but not yet this resource. Otherwise the pod
// gets some of the free accelerators. Both are guesses; a pool with late binding needs none.
// Ownership: shares the view. Threads: thread-safe; For() waits for `allocated` at most.

class AdmissionHints {
 public:
  using Clock = std::chrono::steady_clock;
  // All devices that kubelet has allocated. Needs a time limit of its own: an admission waits.
  using AllocatedSource = std::function<Result<std::vector<kubelet::AllocatedDevices>>()>;

  explicit AdmissionHints(AllocatedSource allocated) : allocated_(std::move(allocated)) {}

  // After every discovery of the node. Either may be nullptr.
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
  void Remember(const Containers& containers, Clock::time_point seen);
  [[nodiscard]] std::vector<PciAddress> Expected(const Containers& containers, const std::string& resource,
                                                 Clock::time_point now) const;

  const AllocatedSource allocated_;
  mutable std::mutex mutex_;
  std::shared_ptr<const topology::Topology> topology_;
  std::shared_ptr<const topology::AcceleratorIds> ids_;
  std::map<std::string, Clock::time_point> first_seen_;  // of containers with accelerators
};

}  // namespace railhead::late_binding
