#include "deviceplugin/services/late_binding/admission_hints.h"

#include <algorithm>
#include <set>
#include <utility>

#include "deviceplugin/services/late_binding/binder.h"

namespace railhead {
namespace {

// From the first resource that kubelet allocates for a container to the last.
constexpr std::chrono::seconds kAdmission{10};

bool HasChoice(const ResourcePool& pool) {
  return std::any_of(pool.members.begin(), pool.members.end(), [&](const PoolMember& member) {
    return member.function.pf != pool.members.front().function.pf;
  });
}

}  // namespace

void AdmissionHints::Update(std::shared_ptr<const Topology> topology,
                            std::shared_ptr<const AcceleratorIds> ids, Clock::time_point now) {
  const bool asks = topology && ids && !topology->accelerators().empty();
  const auto given = asks ? given_() : Result<std::vector<GivenDevices>>();
  const auto containers =
      asks && given ? ContainersOf(*given, *ids, AcceleratorIds::Effort::kLibrary) : Containers{};
  const std::lock_guard lock(mutex_);
  topology_ = std::move(topology);
  ids_ = std::move(ids);
  // Without an answer nobody has gone.
  if (given) Remember(containers, now - kAdmission - std::chrono::seconds(1));
}

std::map<PciAddress, std::vector<PciPath>> AdmissionHints::For(const ResourcePool& pool,
                                                               Clock::time_point now) {
  std::unique_lock lock(mutex_);
  const auto topology = topology_;
  const auto ids = ids_;
  lock.unlock();
  if (!topology || !ids || topology->accelerators().empty() || !HasChoice(pool)) return {};
  const auto given = given_();
  if (!given) return {};
  const auto containers = ContainersOf(*given, *ids, AcceleratorIds::Effort::kFiles);
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

AdmissionHints::Containers AdmissionHints::ContainersOf(const std::vector<GivenDevices>& given,
                                                        const AcceleratorIds& ids,
                                                        AcceleratorIds::Effort effort) const {
  Containers containers;
  for (const GivenDevices& one : given) {
    Container& container = containers[one.pod + "/" + one.container];
    container.resources.push_back(one.resource);
    for (const std::string& id : one.ids) {
      const auto address = ids.Find(id, one.resource, effort);
      const auto& known = container.accelerators;
      if (address && std::find(known.begin(), known.end(), *address) == known.end())
        container.accelerators.push_back(*address);
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
    if (seen < newest || std::find(has.begin(), has.end(), resource) != has.end()) continue;
    if (seen > newest) accelerators.clear();
    newest = seen;
    accelerators.insert(accelerators.end(), container.accelerators.begin(), container.accelerators.end());
  }
  return accelerators;
}

}  // namespace railhead
