#include "deviceplugin/services/late_binding/admission_hints.h"

#include <algorithm>
#include <set>
#include <utility>

#include "deviceplugin/services/late_binding/paths_to.h"
#include "netns/base/mutex.h"
#include "netns/base/text.h"

namespace railhead::late_binding {
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
  const auto allocated = asks ? allocated_() : Result<std::vector<kubelet::AllocatedDevices>>();
  const auto containers = asks && allocated
                              ? ContainersOf(*allocated, *ids, topology::AcceleratorIds::Effort::kLibrary)
                              : Containers{};
  const MutexLock lock(mutex_);
  topology_ = std::move(topology);
  ids_ = std::move(ids);
  // Without an answer keep all.
  if (allocated) Remember(containers, now - kAdmission - std::chrono::seconds(1));
}

std::map<PciAddress, std::vector<PciPath>> AdmissionHints::For(const resources::ResourcePool& pool,
                                                               Clock::time_point now) {
  MutexLock lock(mutex_);
  const auto topology = topology_;
  const auto ids = ids_;
  lock.unlock();
  if (!topology || !ids || topology->accelerators().empty() || !HasChoice(pool)) return {};
  const auto allocated = allocated_();
  if (!allocated) return {};
  const auto containers = ContainersOf(*allocated, *ids, topology::AcceleratorIds::Effort::kFiles);
  lock.lock();
  Remember(containers, now);
  auto accelerators = Expected(containers, pool.spec.resource, now);
  lock.unlock();
  if (accelerators.empty()) {
    std::set<PciAddress> in_use;
    for (const auto& [name, container] : containers)
      in_use.insert(container.accelerators.begin(), container.accelerators.end());
    for (const Accelerator& one : topology->accelerators()) {
      if (!in_use.contains(one.address)) accelerators.push_back(one.address);
    }
  }
  return PathsTo(pool, *topology, accelerators);
}

AdmissionHints::Containers AdmissionHints::ContainersOf(
    const std::vector<kubelet::AllocatedDevices>& allocated, const topology::AcceleratorIds& ids,
    topology::AcceleratorIds::Effort effort) const {
  Containers containers;
  for (const kubelet::AllocatedDevices& one : allocated) {
    Container& container = containers[one.pod + "/" + one.container];
    container.resources.push_back(one.resource);
    for (const PciAddress& address : ids.FindAll(one.ids, one.resource, effort)) {
      if (!Contains(container.accelerators, address)) container.accelerators.push_back(address);
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
