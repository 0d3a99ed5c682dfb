// Binder: which device each of a pod's slots shall be, when the pod's sandbox is made.
//
// By then kubelet's checkpoint names the pod's accelerators, or its pod-resources API does, if
// a DRA driver gave them. Of the devices that are free
// those are chosen that Prefer() (pools/preferred.h) takes for the best: one per rail, near
// the accelerators. A slot of a sandbox that is made again may get its old device, which ADD
// then waits for, or another one.
//
// Nothing is kept: a device is bound from when ADD has written its journal entry. Until
// then, for a minute or until kubelet has forgotten the pod, it is reserved for its slot in
// memory; if the daemon dies in between,
// two ADDs can be told the same device, and the second one, which finds it locked or in use, is
// tried again by kubelet.
// Threads: thread-safe. Files and kubelet are read without a lock, so Update() and other requests never wait
// for them; only the choice and the reservation are made one after the other. Errors: kInvalid for slots that
// are none, kPermission for slots that kubelet gave to another pod, kBusy when no device is free, and before
// the first Update(). A pod that the checkpoint does not have, or without accelerators, is bound in the
// rails' order.
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

#include "cni/state/allocation.h"
#include "cni/state/bind_protocol.h"
#include "deviceplugin/node/resources/preferred.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/topology/accelerator_ids.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/services/kubelet/kubelet_client.h"
#include "deviceplugin/services/late_binding/bind_server.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_path.h"

namespace railhead::late_binding {

// What this node is, as of the last look.
struct BindingView {
  std::vector<std::shared_ptr<const resources::ResourcePool>> pools;  // of devices, not of slots
  std::set<std::string> unhealthy;
  std::shared_ptr<const topology::Topology> topology;            // nullptr: not known
  std::shared_ptr<const topology::AcceleratorIds> accelerators;  // of the topology
};

class Binder {
 public:
  using Clock = std::chrono::steady_clock;

  // What kubelet has given to whom, DRA drivers' devices too.
  using Given = SharedAnswer::Ask;

  explicit Binder(Root root, Given given = {}) : root_(std::move(root)), given_(std::move(given)) {}

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

  // A pool of the request, as files and kubelet have it.
  struct PoolLook {
    std::shared_ptr<const resources::ResourcePool> pool;
    std::vector<std::string> slots;
    // By device that may be given: the slot that it is bound to, "" a pod that has it without; nullopt:
    // nobody.
    std::map<std::string, std::optional<std::string>> holders;
    std::map<PciAddress, std::vector<PciPath>> paths;
  };
  struct Look {
    std::shared_ptr<const BindingView> view;
    Checkpoint checkpoint;
    std::vector<PoolLook> pools;
    // Reservations up to this one are older than the checkpoint.
    std::uint64_t reservations = 0;
  };

  [[nodiscard]] Result<Look> LookFor(const BindRequest& request);
  [[nodiscard]] Result<std::map<std::string, std::vector<std::string>>> SlotsByResource(
      const BindRequest& request) const;
  [[nodiscard]] Result<std::vector<PciAddress>> AcceleratorsOf(const BindRequest& request, const Look& look);
  [[nodiscard]] Result<PoolLook> LookAtPool(const BindingView& view, const std::string& resource,
                                            std::vector<std::string> slots,
                                            const std::vector<PciAddress>& accelerators) const;
  Result<Bindings> Reserve(const BindRequest& request, const Look& look, Clock::time_point now);
  [[nodiscard]] Result<void> Choose(const PoolLook& pool, Bindings* bindings) const;
  [[nodiscard]] Result<void> WriteInfos(const Look& look, const Bindings& bindings) const;
  void ForgetReservations(const Look& look, Clock::time_point now);
  [[nodiscard]] bool IsReserved(const std::string& device, const std::set<std::string>& own) const;

  const Root root_;
  SharedAnswer given_;
  std::mutex mutex_;
  std::shared_ptr<const BindingView> view_ = std::make_shared<const BindingView>();
  std::map<std::string, Reservation> reserved_;  // by slot
  std::uint64_t reservations_ = 0;               // so far
};

// How near a pool's NICs are to some accelerators, as Prefer() wants to know it.
// Threads: pure function.

// By PF, in the order of `accelerators`. Empty without accelerators.
std::map<PciAddress, std::vector<PciPath>> PathsTo(const resources::ResourcePool& pool,
                                                   const topology::Topology& topology,
                                                   const std::vector<PciAddress>& accelerators);

// AdmissionHints: which accelerators the pod that kubelet is admitting has, or most likely gets.
//
// GetPreferredAllocation names no pod. kubelet asks each plugin of a container in random
// order, so in about half of all cases the accelerators have been given out before: then the
// pod-resources API (since Kubernetes 1.34) shows a container that has accelerators, not yet
// this resource, and that was not there when it was last looked at. Otherwise the pod gets
// some of those that nobody has. Both are guesses; a pool with late binding needs none.
// Ownership: shares the view. Threads: thread-safe; For() waits for `given` at most.

class AdmissionHints {
 public:
  using Clock = std::chrono::steady_clock;
  // Everything that kubelet has given out. Must have an end of its own: an admission waits.
  using Given = std::function<Result<std::vector<kubelet::GivenDevices>>()>;

  explicit AdmissionHints(Given given) : given_(std::move(given)) {}

  // After every look at the node: what there is, and who has it by now. Either may be nullptr.
  void Update(std::shared_ptr<const topology::Topology> topology,
              std::shared_ptr<const topology::AcceleratorIds> ids, Clock::time_point now = Clock::now());

  // PreferHints::paths. Empty when nothing speaks for one NIC.
  std::map<PciAddress, std::vector<PciPath>> For(const resources::ResourcePool& pool,
                                                 Clock::time_point now = Clock::now());

 private:
  struct Container {
    std::vector<PciAddress> accelerators;
    std::vector<std::string> resources;
  };
  using Containers = std::map<std::string, Container>;  // by NAMESPACE/POD/CONTAINER

  [[nodiscard]] Containers ContainersOf(const std::vector<kubelet::GivenDevices>& given,
                                        const topology::AcceleratorIds& ids,
                                        topology::AcceleratorIds::Effort effort) const;
  void Remember(const Containers& containers, Clock::time_point seen);
  [[nodiscard]] std::vector<PciAddress> Expected(const Containers& containers, const std::string& resource,
                                                 Clock::time_point now) const;

  const Given given_;
  mutable std::mutex mutex_;
  std::shared_ptr<const topology::Topology> topology_;
  std::shared_ptr<const topology::AcceleratorIds> ids_;
  std::map<std::string, Clock::time_point> first_seen_;  // of containers with accelerators
};

}  // namespace railhead::late_binding
