#include "deviceplugin/services/late_binding/binder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cni/state/allocation.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/resources/allocate.h"
#include "netns/base/text.h"

namespace railhead::late_binding {
namespace {

// Longer than an ADD takes from the answer to its journal entry, waiting for the device
// included.
constexpr std::chrono::seconds kReservation{60};

// Who has the device: nullopt for nobody, else its slot, or "" for a pod that has it without.
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

tl::unexpected<Error> FailGivenToAnother(const std::string& slot, const std::string& pod_uid,
                                         const std::string& owner) {
  return Fail(ErrorCode::kPermission,
              "binding slot " + slot + " for pod '" + pod_uid + "': kubelet gave it to pod " + owner,
              "a network configuration must not name devices: kubelet gives the pod what it requests");
}

// kubelet forgets a pod that has ended before it gives its slots to another one.
Result<void> RefuseSlotsOfOthers(const std::vector<ContainerDevices>& checkpoint,
                                 const BindRequest& request) {
  for (const std::string& slot : request.slots) {
    std::string owner;
    bool own = false;
    for (const ContainerDevices& given : checkpoint) {
      if (!Contains(given.ids, slot)) continue;
      owner = given.pod_uid;
      own = own || given.pod_uid == request.pod_uid;
    }
    if (!owner.empty() && !own) return FailGivenToAnother(slot, request.pod_uid, owner);
  }
  return {};
}

}  // namespace

void Binder::Update(BindingView view) {
  auto shared = std::make_shared<const BindingView>(std::move(view));
  const std::lock_guard lock(mutex_);
  view_ = std::move(shared);
}

Result<Bindings> Binder::Bind(const BindRequest& request, Clock::time_point now) {
  const Look look = RH_TRY(LookFor(request));
  auto bindings = RH_TRY(Reserve(request, look, now));
  RH_TRY(WriteInfos(look, bindings));
  return bindings;
}

Result<Binder::Look> Binder::LookFor(const BindRequest& request) {
  Look look;
  {
    const std::lock_guard lock(mutex_);
    look.view = view_;
    look.reservations = reservations_;
  }
  if (look.view->pools.empty()) {
    return Fail(ErrorCode::kBusy, "railheadd knows of no pool with late binding",
                "it has just started, or its configuration has none any more");
  }
  look.checkpoint = RH_TRY_WRAP(ReadCheckpoint(root_), "looking for whom kubelet gave the slots to");
  RH_TRY(RefuseSlotsOfOthers(look.checkpoint, request));
  const auto slots = RH_TRY(SlotsByResource(request));
  const auto accelerators = RH_TRY(AcceleratorsOf(request, look));
  for (const auto& [resource, names] : slots)
    look.pools.push_back(RH_TRY(LookAtPool(*look.view, resource, names, accelerators)));
  return look;
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
Result<std::vector<PciAddress>> Binder::AcceleratorsOf(const BindRequest& request, const Look& look) {
  const std::string& pod_uid = request.pod_uid;
  std::set<PciAddress> found;
  if (!look.view->accelerators || pod_uid.empty()) return std::vector<PciAddress>{};
  const auto add = [&](const std::string& resource, const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      if (IsSlot(id)) continue;
      if (const auto address = look.view->accelerators->Find(id, resource); address) found.insert(*address);
    }
  };
  for (const ContainerDevices& given : look.checkpoint) {
    if (given.pod_uid == pod_uid) add(given.resource, given.ids);
  }
  if (found.empty() && given_) {
    // A DRA driver's devices are in no checkpoint. Without an answer any device will do.
    for (const kubelet::GivenDevices& given : given_.Get().value_or(std::vector<kubelet::GivenDevices>{})) {
      if (given.pod == request.pod) add(given.resource, given.ids);
    }
  }
  return std::vector<PciAddress>(found.begin(), found.end());
}

Result<Binder::PoolLook> Binder::LookAtPool(const BindingView& view, const std::string& resource,
                                            std::vector<std::string> slots,
                                            const std::vector<PciAddress>& accelerators) const {
  const auto found =
      std::ranges::find_if(view.pools, [&](const auto& pool) { return pool->spec.resource == resource; });
  if (found == view.pools.end() || !(*found)->spec.late) {
    return Fail(ErrorCode::kInvalid, resource + " is no pool with late binding any more",
                "make the pod again: its slots are of an earlier configuration");
  }
  PoolLook look;
  look.pool = *found;
  look.slots = std::move(slots);
  if (view.topology) look.paths = PathsTo(*look.pool, *view.topology, accelerators);
  const Journal journal(root_);
  for (const resources::PoolMember& member : look.pool->members) {
    const std::string& id = member.function.id;
    if (view.unhealthy.contains(id)) continue;
    // An entry that cannot be read costs its own device, not the pool.
    if (auto holder = HolderOf(journal, id); holder) look.holders[id] = *std::move(holder);
  }
  return look;
}

// A device that was free when it was looked at is reserved since, or still free.
Result<Bindings> Binder::Reserve(const BindRequest& request, const Look& look, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  ForgetReservations(look, now);
  Bindings bindings;
  for (const PoolLook& pool : look.pools) RH_TRY(Choose(pool, &bindings));
  const bool listed = Lists(look.checkpoint, request.pod_uid);
  for (const auto& [slot, device] : bindings) {
    reserved_[slot] = {device, now + kReservation, listed ? request.pod_uid : std::string(), ++reservations_};
  }
  return bindings;
}

// A pod that came and went within the minute would keep the next one off its device. A reservation that is
// younger than the checkpoint can be of a pod that the checkpoint does not have yet.
void Binder::ForgetReservations(const Look& look, Clock::time_point now) {
  std::erase_if(reserved_, [&](const auto& entry) {
    const Reservation& reservation = entry.second;
    return reservation.until <= now ||
           (reservation.number <= look.reservations && !reservation.pod_uid.empty() &&
            !Lists(look.checkpoint, reservation.pod_uid));
  });
}

bool Binder::IsReserved(const std::string& device, const std::set<std::string>& own) const {
  return std::ranges::any_of(reserved_, [&](const auto& reservation) {
    return reservation.second.device == device && !own.contains(reservation.first);
  });
}

Result<void> Binder::Choose(const PoolLook& pool, Bindings* bindings) const {
  const std::set<std::string> own(pool.slots.begin(), pool.slots.end());
  resources::PreferHints hints;
  hints.paths = pool.paths;
  std::vector<std::string> free;
  for (const auto& [id, holder] : pool.holders) {
    // The view can have changed since.
    if (view_->unhealthy.contains(id) || IsReserved(id, own)) continue;
    if (holder && !own.contains(*holder)) continue;
    if (holder) hints.away.insert(id);  // of the sandbox that this one replaces
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

Result<void> Binder::WriteInfos(const Look& look, const Bindings& bindings) const {
  for (const PoolLook& pool : look.pools) {
    for (const std::string& slot : pool.slots) {
      resources::PoolMember member = *pool.pool->Find(bindings.at(slot));
      member.function.id = slot;
      RH_TRY(WriteDeviceInfo(root_, pool.pool->spec, member));
    }
  }
  return {};
}

std::map<PciAddress, std::vector<PciPath>> PathsTo(const resources::ResourcePool& pool,
                                                   const topology::Topology& topology,
                                                   const std::vector<PciAddress>& accelerators) {
  std::map<PciAddress, std::vector<PciPath>> all;
  if (accelerators.empty()) return all;
  for (const resources::PoolMember& member : pool.members) {
    auto& paths = all[member.function.pf];
    if (!paths.empty()) continue;
    paths.reserve(accelerators.size());
    for (const PciAddress& accelerator : accelerators)
      paths.push_back(topology.Between(member.function.address, accelerator).value_or(PciPath::kSys));
  }
  return all;
}

namespace {

// From the first resource that kubelet allocates for a container to the last.
constexpr std::chrono::seconds kAdmission{10};

bool HasChoice(const resources::ResourcePool& pool) {
  return std::ranges::any_of(pool.members, [&](const resources::PoolMember& member) {
    return member.function.pf != pool.members.front().function.pf;
  });
}

}  // namespace

void AdmissionHints::Update(std::shared_ptr<const topology::Topology> topology,
                            std::shared_ptr<const topology::AcceleratorIds> ids, Clock::time_point now) {
  const bool asks = topology && ids && !topology->accelerators().empty();
  const auto given = asks ? given_() : Result<std::vector<kubelet::GivenDevices>>();
  const auto containers =
      asks && given ? ContainersOf(*given, *ids, topology::AcceleratorIds::Effort::kLibrary) : Containers{};
  const std::lock_guard lock(mutex_);
  topology_ = std::move(topology);
  ids_ = std::move(ids);
  // Without an answer nobody has gone.
  if (given) Remember(containers, now - kAdmission - std::chrono::seconds(1));
}

std::map<PciAddress, std::vector<PciPath>> AdmissionHints::For(const resources::ResourcePool& pool,
                                                               Clock::time_point now) {
  std::unique_lock lock(mutex_);
  const auto topology = topology_;
  const auto ids = ids_;
  lock.unlock();
  if (!topology || !ids || topology->accelerators().empty() || !HasChoice(pool)) return {};
  const auto given = given_();
  if (!given) return {};
  const auto containers = ContainersOf(*given, *ids, topology::AcceleratorIds::Effort::kFiles);
  lock.lock();
  Remember(containers, now);
  auto accelerators = Expected(containers, pool.spec.resource, now);
  lock.unlock();
  if (accelerators.empty()) {
    std::set<PciAddress> taken;
    for (const auto& [name, container] : containers)
      taken.insert(container.accelerators.begin(), container.accelerators.end());
    for (const Accelerator& one : topology->accelerators()) {
      if (!taken.contains(one.address)) accelerators.push_back(one.address);
    }
  }
  return PathsTo(pool, *topology, accelerators);
}

AdmissionHints::Containers AdmissionHints::ContainersOf(const std::vector<kubelet::GivenDevices>& given,
                                                        const topology::AcceleratorIds& ids,
                                                        topology::AcceleratorIds::Effort effort) const {
  Containers containers;
  for (const kubelet::GivenDevices& one : given) {
    Container& container = containers[one.pod + "/" + one.container];
    container.resources.push_back(one.resource);
    for (const std::string& id : one.ids) {
      const auto address = ids.Find(id, one.resource, effort);
      const auto& known = container.accelerators;
      if (address && !Contains(known, *address)) container.accelerators.push_back(*address);
    }
  }
  std::erase_if(containers, [](const auto& container) { return container.second.accelerators.empty(); });
  return containers;
}

void AdmissionHints::Remember(const Containers& containers, Clock::time_point seen) {
  std::erase_if(first_seen_, [&](const auto& known) { return !containers.contains(known.first); });
  for (const auto& [name, container] : containers) first_seen_.emplace(name, seen);
}

// kubelet admits one pod after the other: the newest is meant.
std::vector<PciAddress> AdmissionHints::Expected(const Containers& containers, const std::string& resource,
                                                 Clock::time_point now) const {
  std::vector<PciAddress> accelerators;
  auto newest = now - kAdmission;
  for (const auto& [name, container] : containers) {
    const auto& has = container.resources;
    const auto seen = first_seen_.at(name);
    if (seen < newest || Contains(has, resource)) continue;
    if (seen > newest) accelerators.clear();
    newest = seen;
    accelerators.insert(accelerators.end(), container.accelerators.begin(), container.accelerators.end());
  }
  return accelerators;
}

}  // namespace railhead::late_binding
