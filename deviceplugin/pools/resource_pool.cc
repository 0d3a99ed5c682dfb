#include "deviceplugin/pools/resource_pool.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace railhead {
namespace {

bool HasNetworkDriver(const NicFunction& function) {
  static constexpr std::array<std::string_view, 4> kUserSpace = {"", "vfio-pci", "uio_pci_generic",
                                                                 "igb_uio"};
  return std::find(kUserSpace.begin(), kUserSpace.end(), function.driver) == kUserSpace.end();
}

bool MayBeGivenOut(const NicFunction& function) {
  if (function.used_by_host || !HasNetworkDriver(function)) return false;
  return function.is_vf || function.vf_count == 0;
}

bool Selects(const ResourceSpec& spec, const NicFunction& function) {
  return std::any_of(spec.selectors.begin(), spec.selectors.end(),
                     [&](const Selector& selector) { return selector.Matches(function); });
}

// Ranks of the PFs for which the spec has none follow those that it has.
int RailOf(const ResourceSpec& spec, const Inventory& inventory, const NicFunction& function) {
  const auto named = spec.rails.find(function.pf.ToString());
  if (named != spec.rails.end()) return named->second;
  int rank = static_cast<int>(spec.rails.size());
  for (const NicFunction& other : inventory.functions) {
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
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return plain(c) || inside.find(c) != std::string_view::npos; });
}

}  // namespace

const PoolMember* ResourcePool::Find(std::string_view id) const {
  const auto found = std::lower_bound(
      members.begin(), members.end(), id,
      [](const PoolMember& member, std::string_view key) { return member.function.id < key; });
  return found == members.end() || found->function.id != id ? nullptr : &*found;
}

std::vector<std::shared_ptr<const ResourcePool>> BuildPools(const std::vector<ResourceSpec>& specs,
                                                            const Inventory& inventory) {
  std::set<std::string> taken;
  std::vector<std::shared_ptr<const ResourcePool>> pools;
  for (const ResourceSpec& spec : specs) {
    auto pool = std::make_shared<ResourcePool>();
    pool->spec = spec;
    for (const NicFunction& function : inventory.functions) {
      if (!MayBeGivenOut(function) || taken.contains(function.id) || !Selects(spec, function)) continue;
      taken.insert(function.id);
      pool->members.push_back({function, RailOf(spec, inventory, function)});
    }
    std::sort(pool->members.begin(), pool->members.end(),
              [](const PoolMember& a, const PoolMember& b) { return a.function.id < b.function.id; });
    pools.push_back(std::move(pool));
  }
  return pools;
}

Result<void> CheckResourceName(const std::string& resource) {
  const auto wrong = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalid, "'" + resource + "' is no name of an extended resource: " + why,
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

}  // namespace railhead
