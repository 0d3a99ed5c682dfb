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
// Threads: thread-safe; one request after the other.
// Errors: kInvalid for slots that are none, kBusy when no device is free, and
// before the first Update(). A pod that the
// checkpoint does not have, or without accelerators, is bound in the rails' order.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/state/bind_protocol.h"
#include "cni/state/checkpoint.h"
#include "deviceplugin/kubelet/pod_resources.h"
#include "deviceplugin/pools/preferred.h"
#include "deviceplugin/pools/resource_pool.h"
#include "deviceplugin/topology/accelerator_ids.h"
#include "deviceplugin/topology/topology.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// What this node is, as of the last look.
struct BindingView {
  std::vector<std::shared_ptr<const ResourcePool>> pools;  // of devices, not of slots
  std::set<std::string> unhealthy;
  std::shared_ptr<const Topology> topology;            // nullptr: not known
  std::shared_ptr<const AcceleratorIds> accelerators;  // of the topology
};

class Binder {
 public:
  using Clock = std::chrono::steady_clock;

  // What kubelet has given to whom, DRA drivers' devices too (kubelet/pod_resources.h).
  using Given = std::function<Result<std::vector<GivenDevices>>()>;

  explicit Binder(Root root, Given given = {}) : root_(std::move(root)), given_(std::move(given)) {}

  void Update(BindingView view);
  Result<Bindings> Bind(const BindRequest& request, Clock::time_point now = Clock::now());

 private:
  struct Reservation {
    std::string device;
    Clock::time_point until;
    std::string pod_uid;  // "" when kubelet's checkpoint did not have the pod
  };
  using Checkpoint = std::vector<ContainerDevices>;

  [[nodiscard]] Result<std::map<std::string, std::vector<std::string>>> SlotsByResource(
      const BindRequest& request) const;
  [[nodiscard]] Result<void> BindPool(const std::string& resource, const std::vector<std::string>& slots,
                                      const std::vector<PciAddress>& accelerators, Bindings* bindings) const;
  void ForgetReservations(const Result<Checkpoint>& checkpoint, Clock::time_point now);
  [[nodiscard]] Result<std::vector<PciAddress>> AcceleratorsOf(const BindRequest& request,
                                                               const Result<Checkpoint>& checkpoint) const;
  [[nodiscard]] bool IsReserved(const std::string& device, const std::set<std::string>& own) const;

  const Root root_;
  const Given given_;
  std::mutex mutex_;
  BindingView view_;
  std::map<std::string, Reservation> reserved_;  // by slot
};

}  // namespace railhead
