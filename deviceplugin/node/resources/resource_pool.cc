#include "deviceplugin/node/resources/resource_pool.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <set>
#include <vector>

#include "deviceplugin/node/resources/selector.h"
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

}  // namespace railhead::resources
