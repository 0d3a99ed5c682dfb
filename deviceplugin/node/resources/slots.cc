#include "deviceplugin/node/resources/slots.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "cni/state/journal.h"
#include "cni/state/slot_name.h"
#include "netns/base/fnv.h"

namespace railhead::resources {
namespace {

struct Slot {
  std::string name;
  std::optional<int> node;  // in its name
};

// All slots of the resource begin with this. kubelet keeps the names over updates.
std::string PrefixOf(const std::string& resource) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "slot-%08x-", Fnv1a32(resource));
  return text.data();
}

Slot MakeSlot(const std::string& resource, std::optional<int> node, int number) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "n%s-%03d", node ? std::to_string(*node).c_str() : "x",
                      number);
  return {PrefixOf(resource) + text.data(), node};
}

// As many slots as devices, by the devices' nodes.
std::vector<Slot> SlotsOf(const ResourcePool& devices) {
  std::map<std::optional<int>, int> count;
  std::vector<Slot> slots;
  slots.reserve(devices.members.size());
  for (const PoolMember& member : devices.members) {
    const auto& node = member.function.numa_node;
    slots.push_back(MakeSlot(devices.spec.resource, node, count[node]++));
  }
  return slots;
}

class Pairing {
 public:
  explicit Pairing(const ResourcePool& devices) : pool_(std::make_shared<ResourcePool>()) {
    pool_->spec = devices.spec;
    for (const PoolMember& member : devices.members) left_.push_back(&member);
  }

  // Takes the first device in the pool's order that `fits`. false: none does.
  template <typename Fits>
  bool Pair(const std::string& slot, const Fits& fits) {
    const auto found = std::ranges::find_if(left_, [&](auto* member) { return fits(*member); });
    if (found == left_.end()) return false;
    PoolMember member = **found;
    left_.erase(found);
    member.function.id = slot;
    pool_->members.push_back(std::move(member));
    return true;
  }

  std::shared_ptr<const ResourcePool> Take() {
    std::ranges::sort(pool_->members,
                      [](const PoolMember& a, const PoolMember& b) { return a.function.id < b.function.id; });
    return std::move(pool_);
  }

 private:
  std::shared_ptr<ResourcePool> pool_;
  std::vector<const PoolMember*> left_;
};

}  // namespace

BoundSlots ReadBoundSlots(const Root& root) {
  BoundSlots bound;
  const Journal journal(root);
  for (const std::string& name : journal.HeldDevices()) {
    if (!IsSlot(name)) continue;
    const auto entry = journal.FindByDevice(name);
    if (!entry || !*entry) continue;  // half written, or damaged, which others report
    for (const AttachedDevice& link : (*entry)->devices) {
      if (link.slot == name) bound[name] = link.device;
    }
  }
  return bound;
}

std::shared_ptr<const ResourcePool> SlotPool(const ResourcePool& devices, const BoundSlots& bound) {
  Pairing pairing(devices);
  const std::string prefix = PrefixOf(devices.spec.resource);
  // Includes slots that the pool would not name now, since it had other devices then: their devices are not
  // free. A slot whose device is gone is not reported: its pod has lost the device.
  for (const auto& [slot, device] : bound) {
    if (slot.compare(0, prefix.size(), prefix) != 0) continue;
    pairing.Pair(slot, [&, &id = device](const PoolMember& member) { return member.function.id == id; });
  }
  std::vector<Slot> free;
  for (Slot& slot : SlotsOf(devices)) {
    if (!bound.contains(slot.name)) free.push_back(std::move(slot));
  }
  std::vector<Slot> elsewhere;
  for (Slot& slot : free) {
    const bool paired = pairing.Pair(
        slot.name, [&](const PoolMember& member) { return member.function.numa_node == slot.node; });
    if (!paired) elsewhere.push_back(std::move(slot));
  }
  for (const Slot& slot : elsewhere) pairing.Pair(slot.name, [](const PoolMember&) { return true; });
  return pairing.Take();
}

}  // namespace railhead::resources
