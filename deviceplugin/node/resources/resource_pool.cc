#include "deviceplugin/node/resources/resource_pool.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cstdio>
#include <optional>
#include <set>
#include <vector>

#include "cni/state/bind_protocol.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/inventory/subfunctions.h"
#include "netns/base/fnv.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/sys/user_space.h"

namespace railhead::resources {
namespace {

bool Takes(const ResourceSpec& spec, const inventory::NicFunction& function) {
  return spec.kind == function.kind && std::ranges::any_of(spec.selectors, [&](const Selector& selector) {
           return selector.Matches(function);
         });
}

// The VF or subfunction that keeps its PF from being given out. The host needs it, or some resource takes it,
// even if it cannot be given out at the moment.
const inventory::NicFunction* InTheWay(const std::vector<const ResourceSpec*>& specs,
                                       const inventory::Inventory& inventory,
                                       const inventory::NicFunction& pf) {
  for (const auto* functions : {&inventory.Of(pf.kind), &inventory.auxiliaries}) {
    for (const inventory::NicFunction& other : *functions) {
      if (other.pf != pf.address || other.id == pf.id) continue;
      const bool taken = !other.host_use.empty() ||
                         std::ranges::any_of(specs, [&](const auto* spec) { return Takes(*spec, other); });
      if (taken) return &other;
    }
  }
  return nullptr;
}

// Why `selector` of `spec`, which matches, may not have the function; "" when it may.
std::string Objection(const std::vector<const ResourceSpec*>& specs, const inventory::Inventory& inventory,
                      const Selector& selector, const inventory::NicFunction& function) {
  if (!function.host_use.empty()) return function.host_use;
  if (function.driver.empty()) return "is bound to no driver";
  if (function.several_ports) return "has several interfaces of its own, and a pod can get no single one";
  const bool network = function.kind == inventory::FunctionKind::kNetwork;
  if (network && UserSpaceOf(function.driver) != UserSpace::kNone && selector.drivers.empty()) {
    return "has the user-space driver " + function.driver + ", which the selector does not name in drivers";
  }
  if (function.is_vf || function.kind == inventory::FunctionKind::kAuxiliary) return {};
  const bool has_subfunctions =
      Contains(inventory.auxiliaries, function.address, &inventory::NicFunction::pf);
  if (function.vf_count == 0 && !has_subfunctions) return {};
  if (network && function.vf_count > 0 && !selector.Names(function)) {
    return "is a PF with VFs: only a selector of config.json that names it by pciAddresses, or by pfNames "
           "without a range, gives it out";
  }
  const inventory::NicFunction* other = InTheWay(specs, inventory, function);
  if (other == nullptr) return {};
  return std::string("is a PF with ") +
         (other->kind == inventory::FunctionKind::kAuxiliary ? "subfunctions" : "VFs") + ", of which " +
         other->id + " " + (other->host_use.empty() ? "is selected by a resource" : other->host_use);
}

// PFs without a rank in the spec come after those that have one.
int RailOf(const ResourceSpec& spec, const inventory::Inventory& inventory,
           const inventory::NicFunction& function) {
  const auto named = spec.rails.find(function.pf.ToString());
  if (named != spec.rails.end()) return named->second;
  int rank = static_cast<int>(spec.rails.size());
  for (const inventory::NicFunction& other : inventory.functions) {
    if (other.address == function.pf) break;
    if (!other.is_vf) ++rank;
  }
  return rank;
}

// RFC 1123 and Kubernetes' "qualified name": begins and ends with a letter or digit.
bool IsName(std::string_view text, std::string_view inside, std::size_t max, bool upper) {
  const auto plain = [&](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || (c >= 'a' && c <= 'z') ||
           (upper && c >= 'A' && c <= 'Z');
  };
  if (text.empty() || text.size() > max || !plain(text.front()) || !plain(text.back())) return false;
  return std::ranges::all_of(text,
                             [&](char c) { return plain(c) || inside.find(c) != std::string_view::npos; });
}

}  // namespace

const PoolMember* ResourcePool::Find(std::string_view id) const {
  const auto found = std::ranges::lower_bound(
      members, id, {}, [](const PoolMember& member) -> std::string_view { return member.function.id; });
  return found == members.end() || found->function.id != id ? nullptr : &*found;
}

std::vector<std::shared_ptr<const ResourcePool>> BuildPools(const std::vector<ResourceSpec>& specs,
                                                            const inventory::Inventory& inventory) {
  std::vector<const ResourceSpec*> all;
  all.reserve(specs.size());
  for (const ResourceSpec& spec : specs) all.push_back(&spec);
  std::set<std::string> taken;
  std::vector<std::shared_ptr<const ResourcePool>> pools;
  pools.reserve(specs.size());
  for (const ResourceSpec& spec : specs) {
    auto pool = std::make_shared<ResourcePool>();
    pool->spec = spec;
    for (const inventory::NicFunction& function : inventory.Of(spec.kind)) {
      if (taken.contains(function.id)) continue;
      const auto takes = [&](const Selector& selector) {
        return selector.Matches(function) && Objection(all, inventory, selector, function).empty();
      };
      const auto selector = std::ranges::find_if(spec.selectors, takes);
      if (selector == spec.selectors.end()) continue;
      taken.insert(function.id);
      pool->members.push_back({function, RailOf(spec, inventory, function),
                               static_cast<std::size_t>(selector - spec.selectors.begin())});
    }
    std::ranges::sort(pool->members,
                      [](const PoolMember& a, const PoolMember& b) { return a.function.id < b.function.id; });
    pools.push_back(std::move(pool));
  }
  return pools;
}

Exclusion WhyInNoPool(const std::vector<std::shared_ptr<const ResourcePool>>& pools,
                      const inventory::Inventory& inventory, const inventory::NicFunction& function) {
  std::vector<const ResourceSpec*> specs;
  specs.reserve(pools.size());
  for (const auto& pool : pools) specs.push_back(&pool->spec);
  // Reasons that no selector can change come first.
  const Selector all{.drivers = {function.driver}, .pci_addresses = {function.address}};
  if (std::string why = Objection({}, inventory, all, function); !why.empty()) {
    const bool selected =
        std::ranges::any_of(specs, [&](const auto* spec) { return Takes(*spec, function); });
    return {std::move(why), selected};
  }
  std::string unmet;
  for (const ResourceSpec* spec : specs) {
    if (spec->kind != function.kind) continue;
    for (const Selector& selector : spec->selectors) {
      const char* key = selector.FirstUnmet(function);
      if (key == nullptr) return {Objection(specs, inventory, selector, function), false};
      unmet += (unmet.empty() ? "" : ", ") + spec->resource + ": " + key;
    }
  }
  if (function.vf_count > 0) return {"is a PF with VFs", false};  // it is not selected, which is normal
  std::string why = "is selected by no resource";
  if (!unmet.empty()) why += " (" + unmet + ")";
  return {std::move(why), false};
}

Result<void> CheckResourceName(const std::string& resource) {
  const auto wrong = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalid, "'" + resource + "' is not a name of an extended resource: " + why,
                "use a domain of yours and a short name, as railhead.io/roce");
  };
  const auto slash = resource.find('/');
  if (slash == std::string::npos) return wrong("it has no domain");
  const std::string_view whole = resource;
  const std::string_view domain = whole.substr(0, slash);
  const std::string_view name = whole.substr(slash + 1);
  if (!IsName(domain, "-.", 253, false) || domain.find("..") != std::string_view::npos) {
    return wrong("the domain must be lower-case letters, digits, '-' and '.'");
  }
  constexpr std::string_view kReserved = "kubernetes.io";
  if (domain.size() >= kReserved.size() && domain.substr(domain.size() - kReserved.size()) == kReserved) {
    return wrong("kubernetes.io is reserved");
  }
  if (!IsName(name, "-_.", 63, true)) {
    return wrong("the name must be 1 to 63 letters, digits, '-', '_' and '.'");
  }
  return {};
}

namespace {

template <typename T>
bool EmptyOrHas(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || Contains(wanted, value);
}

bool MatchesPf(const std::vector<PfRange>& wanted, const std::string& pf, int vf_index) {
  if (wanted.empty()) return true;
  const std::string name = ToLower(pf);
  return std::ranges::any_of(wanted, [&](const PfRange& range) {
    return !name.empty() && ToLower(range.pf) == name && range.HasVf(vf_index);
  });
}

std::optional<int> ParseIndex(std::string_view text) {
  const auto value = ParseInt(text);
  if (!value || *value < 0 || *value > INT_MAX) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

Result<PfRange> PfRange::Parse(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalid, "'" + std::string(text) + "' " + why,
                "write a PF and, if only some of its VFs are meant, their indices: pf0#0,2-7");
  };
  PfRange range;
  const auto hash = text.find('#');
  range.pf = std::string(text.substr(0, hash));
  if (range.pf.empty()) return wrong("names no PF");
  if (hash == std::string_view::npos) return range;
  for (const std::string& part : Split(text.substr(hash + 1), ',')) {
    const auto dash = part.find('-');
    const auto first = ParseIndex(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : ParseIndex(part.substr(dash + 1));
    if (!first || !last) return wrong("has a range of VFs that is not a list of numbers");
    if (*first > *last) return wrong("has a range of VFs whose end is below its start");
    range.vfs.emplace_back(*first, *last);
  }
  return range;
}

bool PfRange::HasVf(int index) const {
  if (vfs.empty()) return true;
  return std::ranges::any_of(
      vfs, [&](const auto& range) { return range.first <= index && index <= range.second; });
}

const char* Selector::FirstUnmet(const inventory::NicFunction& function) const {
  if (is_vf && *is_vf != function.is_vf) return "device";
  if (!EmptyOrHas(vendors, function.vendor)) return "vendors";
  if (!EmptyOrHas(devices, function.device)) return "devices";
  if (!EmptyOrHas(drivers, function.driver)) return "drivers";
  if (!EmptyOrHas(pci_addresses, function.address)) return "pciAddresses";
  if (!acpi_indexes.empty() && !(function.acpi_index && EmptyOrHas(acpi_indexes, *function.acpi_index))) {
    return "acpiIndexes";
  }
  if (!aux_types.empty() && !EmptyOrHas(aux_types, std::string(inventory::AuxTypeOf(function.id))))
    return "auxTypes";
  if (!MatchesPf(pf_names, function.pf_name, function.vf_index)) return "pfNames";
  if (!root_devices.empty() && !MatchesPf(root_devices, function.pf.ToString(), function.vf_index)) {
    return "rootDevices";
  }
  if (!EmptyOrHas(link_types, function.link_type)) return "linkTypes";
  if (!EmptyOrHas(ddp_profiles, function.ddp_profile)) return "ddpProfiles";
  if (!pkeys.empty() && !(function.pkey && EmptyOrHas(pkeys, *function.pkey))) return "pKeys";
  if (is_rdma.value_or(false) && !function.is_rdma) return "isRdma";
  if (vdpa != inventory::VdpaType::kNone && vdpa != function.vdpa) return "vdpaType";
  return nullptr;
}

bool Selector::Names(const inventory::NicFunction& pf) const {
  if (Contains(pci_addresses, pf.address)) return true;
  return std::ranges::any_of(pf_names, [&](const PfRange& range) {
    return range.vfs.empty() && !pf.pf_name.empty() && ToLower(range.pf) == ToLower(pf.pf_name);
  });
}

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
