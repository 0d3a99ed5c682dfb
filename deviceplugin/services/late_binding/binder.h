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
// Threads: thread-safe. Files and kubelet are read without a lock, so no request waits
// for those of another. Only the choice and the reservation are serialized.
// Errors: kInvalid for invalid slots; kPermission for slots that kubelet allocated to another pod; kBusy when
// no device is free, and before the node was read.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/state/bind_protocol.h"
#include "cni/state/kubelet_checkpoint.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/snapshot/binding_view.h"
#include "deviceplugin/services/late_binding/shared_answer.h"
#include "deviceplugin/support/service/published.h"
#include "netns/base/mutex.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::late_binding {

class Binder {
 public:
  using Clock = std::chrono::steady_clock;

  // The devices that kubelet has allocated to pods, DRA drivers' devices too.
  using AllocatedSource = SharedAnswer::Source;

  Binder(Root root, const Published<BindingView>& view, AllocatedSource allocated = {})
      : root_(std::move(root)), view_(view), allocated_(std::move(allocated)) {}

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
  [[nodiscard]] Result<void> Choose(const PoolState& pool, Bindings* bindings) const RH_REQUIRES(mutex_);
  [[nodiscard]] Result<void> WriteInfos(const NodeState& state, const Bindings& bindings) const;
  void ForgetReservations(const NodeState& state, Clock::time_point now) RH_REQUIRES(mutex_);
  [[nodiscard]] bool IsReserved(const std::string& device, const std::set<std::string>& own) const
      RH_REQUIRES(mutex_);

  const Root root_;
  const Published<BindingView>& view_;
  SharedAnswer allocated_;
  Mutex mutex_;
  std::map<std::string, Reservation> reserved_ RH_GUARDED_BY(mutex_);  // by slot
  std::uint64_t reservations_ RH_GUARDED_BY(mutex_) = 0;               // so far
};

}  // namespace railhead::late_binding
