#include "deviceplugin/services/late_binding/binder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cni/state/allocation.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/resources/device_info.h"
#include "deviceplugin/node/resources/preferred.h"
#include "deviceplugin/services/late_binding/paths_to.h"
#include "netns/base/mutex.h"
#include "netns/base/text.h"

namespace railhead::late_binding {
namespace {

// Longer than an ADD takes from the answer to its journal entry, waiting for the device
// included.
constexpr std::chrono::seconds kReservation{60};

// The slot that the device is bound to; "": a pod has it without a slot; nullopt: it is free.
Result<std::optional<std::string>> HolderOf(const Journal& journal, const std::string& device) {
  const auto entry = RH_TRY(journal.FindByDevice(device));
  if (!entry) return std::nullopt;
  for (const AttachedDevice& link : entry->devices) {
    if (link.device == device) return link.slot;
  }
  return std::nullopt;
}

bool Lists(const std::vector<ContainerDevices>& checkpoint, const std::string& pod_uid) {
  return Contains(checkpoint, pod_uid, &ContainerDevices::pod_uid);
}

tl::unexpected<Error> FailAllocatedToAnother(const std::string& slot, const std::string& pod_uid,
                                             const std::string& owner) {
  return Fail(ErrorCode::kPermission,
              "binding slot " + slot + " for pod '" + pod_uid + "': kubelet allocated it to pod " + owner,
              "remove devices from the network configuration: kubelet allocates those that the pod requests");
}

// kubelet drops a pod that has ended before it allocates its slots to another one.
Result<void> RefuseSlotsOfOthers(const std::vector<ContainerDevices>& checkpoint,
                                 const BindRequest& request) {
  for (const std::string& slot : request.slots) {
    std::string owner;
    bool own = false;
    for (const ContainerDevices& allocated : checkpoint) {
      if (!Contains(allocated.ids, slot)) continue;
      owner = allocated.pod_uid;
      own = own || allocated.pod_uid == request.pod_uid;
    }
    if (!owner.empty() && !own) return FailAllocatedToAnother(slot, request.pod_uid, owner);
  }
  return {};
}

}  // namespace

Result<Bindings> Binder::Bind(const BindRequest& request, Clock::time_point now) {
  const NodeState state = RH_TRY(ReadNodeState(request));
  auto bindings = RH_TRY(Reserve(request, state, now));
  RH_TRY(WriteInfos(state, bindings));
  return bindings;
}

Result<Binder::NodeState> Binder::ReadNodeState(const BindRequest& request) {
  NodeState state;
  state.view = view_.Get();
  {
    const MutexLock lock(mutex_);
    state.reservations = reservations_;
  }
  if (state.view->pools.empty()) {
    return Fail(ErrorCode::kBusy, "railheadd has no pool with late binding",
                "try again if it has just started; else add a pool with late binding to fabric.json");
  }
  state.checkpoint =
      RH_TRY_WRAP(ReadCheckpoint(root_, request.pod_uid), "reading to which pod kubelet allocated the slots");
  RH_TRY(RefuseSlotsOfOthers(state.checkpoint, request));
  const auto slots = RH_TRY(SlotsByResource(request));
  const auto accelerators = RH_TRY(AcceleratorsOf(request, state));
  for (const auto& [resource, names] : slots)
    state.pools.push_back(RH_TRY(ReadPoolState(*state.view, resource, names, accelerators)));
  return state;
}

Result<std::map<std::string, std::vector<std::string>>> Binder::SlotsByResource(
    const BindRequest& request) const {
  std::map<std::string, std::vector<std::string>> slots;
  for (const std::string& slot : std::set<std::string>(request.slots.begin(), request.slots.end())) {
    const auto record = RH_TRY(ReadAllocation(root_, slot));
    if (!record) {
      return Fail(ErrorCode::kInvalid, "slot " + slot + " was never allocated on this node",
                  "only kubelet allocates slots: request the resource in the pod");
    }
    slots[record->resource].push_back(slot);
  }
  return slots;
}

// Unknown IDs are other plugins' devices, or ours.
Result<std::vector<PciAddress>> Binder::AcceleratorsOf(const BindRequest& request, const NodeState& state) {
  const std::string& pod_uid = request.pod_uid;
  std::set<PciAddress> found;
  if (!state.view->accelerators || pod_uid.empty()) return std::vector<PciAddress>{};
  const auto add = [&](const std::string& resource, const std::vector<std::string>& ids) {
    const auto addresses = state.view->accelerators->FindAll(ids, resource);
    found.insert(addresses.begin(), addresses.end());
  };
  for (const ContainerDevices& allocated : state.checkpoint) {
    if (allocated.pod_uid == pod_uid) add(allocated.resource, allocated.ids);
  }
  if (found.empty() && allocated_) {
    // The checkpoint lacks devices of DRA drivers. Without an answer any device will do.
    for (const kubelet::AllocatedDevices& allocated :
         allocated_.Get().value_or(std::vector<kubelet::AllocatedDevices>{})) {
      if (allocated.pod == request.pod) add(allocated.resource, allocated.ids);
    }
  }
  return std::vector<PciAddress>(found.begin(), found.end());
}

Result<Binder::PoolState> Binder::ReadPoolState(const BindingView& view, const std::string& resource,
                                                std::vector<std::string> slots,
                                                const std::vector<PciAddress>& accelerators) const {
  const auto found =
      std::ranges::find_if(view.pools, [&](const auto& pool) { return pool->spec.resource == resource; });
  if (found == view.pools.end() || !(*found)->spec.late) {
    return Fail(ErrorCode::kInvalid, resource + " no longer has late binding",
                "delete the pod and create it again: its slots are of an earlier configuration");
  }
  PoolState state;
  state.pool = *found;
  state.slots = std::move(slots);
  if (view.topology) state.paths = PathsTo(*state.pool, *view.topology, accelerators);
  const Journal journal(root_);
  for (const resources::PoolMember& member : state.pool->members) {
    const std::string& id = member.function.id;
    if (view.unhealthy.contains(id)) continue;
    // An entry that cannot be read costs its own device, not the pool.
    if (auto holder = HolderOf(journal, id); holder) state.holders[id] = *std::move(holder);
  }
  return state;
}

// A device that was free when the state was read is now reserved, or still free.
Result<Bindings> Binder::Reserve(const BindRequest& request, const NodeState& state, Clock::time_point now) {
  const MutexLock lock(mutex_);
  ForgetReservations(state, now);
  Bindings bindings;
  for (const PoolState& pool : state.pools) RH_TRY(Choose(pool, &bindings));
  const bool listed = Lists(state.checkpoint, request.pod_uid);
  for (const auto& [slot, device] : bindings) {
    reserved_[slot] = {device, now + kReservation, listed ? request.pod_uid : std::string(), ++reservations_};
  }
  return bindings;
}

// Otherwise a pod that came and went within the minute would block its device for the next one. A reservation
// that is younger than the checkpoint can be of a pod that the checkpoint does not have yet.
void Binder::ForgetReservations(const NodeState& state, Clock::time_point now) {
  std::erase_if(reserved_, [&](const auto& entry) {
    const Reservation& reservation = entry.second;
    return reservation.until <= now ||
           (reservation.number <= state.reservations && !reservation.pod_uid.empty() &&
            !Lists(state.checkpoint, reservation.pod_uid));
  });
}

bool Binder::IsReserved(const std::string& device, const std::set<std::string>& own) const {
  return std::ranges::any_of(reserved_, [&](const auto& reservation) {
    return reservation.second.device == device && !own.contains(reservation.first);
  });
}

Result<void> Binder::Choose(const PoolState& pool, Bindings* bindings) const {
  const auto view = view_.Get();  // health may have changed since the request came
  const std::set<std::string> own(pool.slots.begin(), pool.slots.end());
  resources::PreferHints hints;
  hints.paths = pool.paths;
  std::vector<std::string> free;
  for (const auto& [id, holder] : pool.holders) {
    // The view can have changed since.
    if (view->unhealthy.contains(id) || IsReserved(id, own)) continue;
    if (holder && !own.contains(*holder)) continue;
    if (holder) hints.still_attached.insert(id);  // of the sandbox that this one replaces
    free.push_back(id);
  }
  auto chosen = Prefer(*pool.pool, free, {}, static_cast<int>(pool.slots.size()), hints);
  if (chosen.size() < pool.slots.size()) {
    return Fail(ErrorCode::kBusy,
                std::to_string(pool.slots.size()) + " slots of " + pool.pool->spec.resource +
                    " need a device each, and " + std::to_string(chosen.size()) + " are free and healthy",
                "see railctl health; devices of pods that are just ending come back by themselves");
  }
  std::ranges::sort(chosen);
  for (std::size_t i = 0; i < pool.slots.size(); ++i) (*bindings)[pool.slots[i]] = chosen[i];
  return {};
}

Result<void> Binder::WriteInfos(const NodeState& state, const Bindings& bindings) const {
  for (const PoolState& pool : state.pools) {
    for (const std::string& slot : pool.slots) {
      resources::PoolMember member = *pool.pool->Find(bindings.at(slot));
      member.function.id = slot;
      RH_TRY(WriteDeviceInfo(root_, pool.pool->spec, member));
    }
  }
  return {};
}

}  // namespace railhead::late_binding
