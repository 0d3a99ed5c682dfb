#include "deviceplugin/binding/binder.h"

#include <algorithm>
#include <utility>

#include "cni/state/allocation.h"
#include "cni/state/journal.h"
#include "deviceplugin/binding/paths.h"
#include "deviceplugin/pools/device_info.h"

namespace railhead {
namespace {

// Longer than an ADD takes from the answer to its journal entry, waiting for the device
// included.
constexpr std::chrono::seconds kReservation{60};

// Who has the device: nullopt for nobody, else its slot, or "" for a pod that has it without.
Result<std::optional<std::string>> HolderOf(const Journal& journal, const std::string& device) {
  const auto entry = RH_TRY(journal.FindByDevice(device));
  if (!entry) return std::nullopt;
  for (const AttachedLink& link : entry->links) {
    if (link.device == device) return link.slot;
  }
  return std::nullopt;
}

bool Lists(const std::vector<ContainerDevices>& checkpoint, const std::string& pod_uid) {
  return std::any_of(checkpoint.begin(), checkpoint.end(),
                     [&](const ContainerDevices& given) { return given.pod_uid == pod_uid; });
}

}  // namespace

void Binder::Update(BindingView view) {
  const std::lock_guard lock(mutex_);
  view_ = std::move(view);
}

Result<Bindings> Binder::Bind(const BindRequest& request, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (view_.pools.empty()) {
    return Fail(ErrorCode::kBusy, "railheadd knows of no pool with late binding",
                "it has just started, or its configuration has none any more");
  }
  const Result<Checkpoint> checkpoint = ReadCheckpoint(root_);
  ForgetReservations(checkpoint, now);
  const auto slots = RH_TRY(SlotsByResource(request));
  const auto accelerators = RH_TRY(AcceleratorsOf(request, checkpoint));
  Bindings bindings;
  for (const auto& [resource, names] : slots) RH_TRY(BindPool(resource, names, accelerators, &bindings));
  const bool listed = checkpoint && Lists(*checkpoint, request.pod_uid);
  for (const auto& [slot, device] : bindings)
    reserved_[slot] = {device, now + kReservation, listed ? request.pod_uid : std::string()};
  return bindings;
}

// A pod that came and went within the minute would keep the next one off its device.
void Binder::ForgetReservations(const Result<Checkpoint>& checkpoint, Clock::time_point now) {
  std::erase_if(reserved_, [&](const auto& reservation) {
    const auto& [device, until, pod_uid] = reservation.second;
    return until <= now || (!pod_uid.empty() && checkpoint && !Lists(*checkpoint, pod_uid));
  });
}

Result<std::map<std::string, std::vector<std::string>>> Binder::SlotsByResource(
    const BindRequest& request) const {
  std::map<std::string, std::vector<std::string>> slots;
  for (const std::string& slot : std::set<std::string>(request.slots.begin(), request.slots.end())) {
    const auto record = RH_TRY(ReadAllocation(root_, slot));
    if (!record) {
      return Fail(ErrorCode::kInvalid, "slot " + slot + " was never allocated on this node",
                  "only kubelet gives out slots: request the resource in the pod");
    }
    slots[record->resource].push_back(slot);
  }
  return slots;
}

// Those that mean nothing here are other plugins' devices, or ours.
Result<std::vector<PciAddress>> Binder::AcceleratorsOf(const BindRequest& request,
                                                       const Result<Checkpoint>& checkpoint) const {
  const std::string& pod_uid = request.pod_uid;
  std::set<PciAddress> found;
  if (!view_.accelerators || pod_uid.empty()) return std::vector<PciAddress>{};
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  const auto add = [&](const std::string& resource, const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      if (IsSlot(id)) continue;
      if (const auto address = view_.accelerators->Find(id, resource); address) found.insert(*address);
    }
  };
  for (const ContainerDevices& given : *checkpoint) {
    if (given.pod_uid == pod_uid) add(given.resource, given.ids);
  }
  if (found.empty() && given_) {
    // A DRA driver's devices are in no checkpoint. Without an answer any device will do.
    for (const GivenDevices& given : given_().value_or(std::vector<GivenDevices>{})) {
      if (given.pod == request.pod) add(given.resource, given.ids);
    }
  }
  return std::vector<PciAddress>(found.begin(), found.end());
}

bool Binder::IsReserved(const std::string& device, const std::set<std::string>& own) const {
  return std::any_of(reserved_.begin(), reserved_.end(), [&](const auto& reservation) {
    return reservation.second.device == device && !own.contains(reservation.first);
  });
}

Result<void> Binder::BindPool(const std::string& resource, const std::vector<std::string>& slots,
                              const std::vector<PciAddress>& accelerators, Bindings* bindings) const {
  const auto found = std::find_if(view_.pools.begin(), view_.pools.end(),
                                  [&](const auto& pool) { return pool->spec.resource == resource; });
  if (found == view_.pools.end() || !(*found)->spec.late) {
    return Fail(ErrorCode::kInvalid, resource + " is no pool with late binding any more",
                "make the pod again: its slots are of an earlier configuration");
  }
  const ResourcePool& pool = **found;
  const std::set<std::string> own(slots.begin(), slots.end());
  const Journal journal(root_);
  PreferHints hints;
  if (view_.topology) hints.paths = PathsTo(pool, *view_.topology, accelerators);
  std::vector<std::string> free;
  for (const PoolMember& member : pool.members) {
    const std::string& id = member.function.id;
    if (view_.unhealthy.contains(id) || IsReserved(id, own)) continue;
    // An entry that cannot be read costs its own device, not the pool.
    const auto holder = HolderOf(journal, id);
    if (!holder || (*holder && !own.contains(**holder))) continue;
    if (*holder) hints.away.insert(id);  // of the sandbox that this one replaces
    free.push_back(id);
  }
  auto chosen = Prefer(pool, free, {}, static_cast<int>(slots.size()), hints);
  if (chosen.size() < slots.size()) {
    return Fail(ErrorCode::kBusy,
                std::to_string(slots.size()) + " slots of " + resource + " need a device each, and " +
                    std::to_string(chosen.size()) + " are free and healthy",
                "see railctl health; devices of pods that are just ending come back by themselves");
  }
  std::sort(chosen.begin(), chosen.end());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    PoolMember member = *pool.Find(chosen[i]);
    member.function.id = slots[i];
    RH_TRY(WriteDeviceInfo(root_, pool.spec, member));
    (*bindings)[slots[i]] = chosen[i];
  }
  return {};
}

}  // namespace railhead
