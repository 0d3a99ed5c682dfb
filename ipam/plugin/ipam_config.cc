#include "ipam/plugin/ipam_config.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "cni/fabric/add_refusals.h"
#include "cni/fabric/fabric.h"
#include "cni/fabric/node_index.h"
#include "ipam/plugin/fabric_source.h"
#include "ipam/plugin/fields.h"
#include "ipam/plugin/resolv_conf.h"
#include "ipam/store/rail_part_of.h"
#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

struct ReuseDelays {
  std::chrono::seconds reuse_delay;
  std::chrono::seconds min_reuse_delay;
};

ReuseDelays ReuseDelaysOf(const PoolFields& fields, std::int64_t reuse_delay, std::int64_t min_reuse_delay) {
  return {std::chrono::seconds(fields.reuse_delay_seconds.value_or(reuse_delay)),
          std::chrono::seconds(fields.min_reuse_delay_seconds.value_or(min_reuse_delay))};
}

Result<PoolChoice> MakeChoice(const RangeSpec& spec, const std::string& where, const ReuseDelays& delays) {
  RangeSet ranges = RH_TRY_WRAP(RangeSet::Make(spec), where);
  std::string name = ranges.subnet().ToString();
  return PoolChoice{{std::move(name), std::move(ranges), delays.reuse_delay, delays.min_reuse_delay},
                    spec.gateway};
}

std::vector<IpRange> ExclusionsFor(const IpPrefix& subnet, const PoolFields& fields) {
  std::vector<IpRange> exclusions = fields.exclude;
  std::copy_if(fields.exclude_of_all.begin(), fields.exclude_of_all.end(), std::back_inserter(exclusions),
               [&](const IpRange& range) { return range.first.IsV4() == subnet.address.IsV4(); });
  for (const IpAddress& hop : fields.next_hops) {
    if (subnet.Contains(hop)) exclusions.push_back({hop, hop});
  }
  return exclusions;
}

// Adds the settings of `range` to the subnet's.
Result<void> AddRange(const RangeFields& range, const PoolFields& fields, FabricSource& source,
                      RangeSpec& spec) {
  spec.subnet = range.subnet;
  if (spec.gateway && range.gateway && *spec.gateway != *range.gateway) {
    return Fail(ErrorCode::kInvalid,
                range.where + ": gateway " + range.gateway->ToString() + " beside " +
                    spec.gateway->ToString() + " of the same subnet",
                "give the subnet one gateway");
  }
  if (range.gateway) spec.gateway = range.gateway;
  const auto shared = ExclusionsFor(spec.subnet, fields);
  spec.exclusions.insert(spec.exclusions.end(), shared.begin(), shared.end());
  spec.exclusions.insert(spec.exclusions.end(), range.exclude.begin(), range.exclude.end());
  const IpAddress first = range.first.value_or(range.subnet.First());
  const IpAddress last = range.last.value_or(range.subnet.Last());
  if (last < first || first.IsV4() != last.IsV4()) {
    return Fail(ErrorCode::kInvalid, range.where + ": rangeStart " + first.ToString() +
                                         " is not before rangeEnd " + last.ToString());
  }
  const IpRange given{first, last};
  spec.ranges.push_back(range.of_cluster ? RH_TRY(WithinSlice(range, given, fields.node_slice, source))
                                         : given);
  return {};
}

// Ranges of one subnet are one pool, in the place of the first of them.
Result<AddressPlan> PlanInline(const PoolFields& fields, FabricSource& source) {
  std::vector<std::pair<std::string, RangeSpec>> specs;
  for (const RangeFields& range : fields.ranges) {
    auto at = std::ranges::find_if(specs, [&](const auto& one) { return one.second.subnet == range.subnet; });
    if (at == specs.end()) at = specs.insert(at, {range.where, {}});
    RH_TRY(AddRange(range, fields, source, at->second));
  }
  AddressPlan plan;
  plan.ifname = fields.ifname;
  if (fields.routes) plan.routes.assign(fields.routes->begin(), fields.routes->end());
  const ReuseDelays delays = ReuseDelaysOf(fields, kDefaultReuseDelaySeconds, kDefaultMinReuseDelaySeconds);
  for (const auto& [where, spec] : specs) plan.choices.push_back(RH_TRY(MakeChoice(spec, where, delays)));
  return plan;
}

Result<const Rail*> FindRail(const Fabric& fabric, const PoolFields& fields, const std::string& path) {
  if (const Rail* rail = fabric.FindRail(*fields.rail); rail != nullptr) return rail;
  std::vector<std::string> names;
  names.reserve(fabric.rails.size());
  for (const Rail& rail : fabric.rails) names.push_back(rail.name);
  const auto nearest = Nearest(*fields.rail, names);
  return Fail(ErrorCode::kInvalid, fields.where + "/rail: " + path + " has no rail '" + *fields.rail + "'",
              nearest ? "did you mean '" + *nearest + "'?" : "it has: " + Join(names, ", "));
}

Result<std::vector<IpRange>> RangesOfNode(const Fabric& fabric, const Rail& rail, const std::string& where,
                                          FabricSource& source) {
  const std::string node = RH_TRY(source.Node());
  if (auto ranges = rail.RangesOf(node, std::nullopt); !ranges.empty()) return ranges;
  const auto index = RH_TRY_WRAP(source.Index(), where);
  if (auto ranges = rail.RangesOf(node, index); !ranges.empty()) return ranges;
  return Fail(
      Wrap(WhyNoRange(fabric, rail, node, index), where + " has no address range for node '" + node + "'"));
}

std::vector<CniRoute> RoutesOf(const Rail& rail, const std::optional<IpAddress>& gateway) {
  std::vector<CniRoute> routes;
  for (const IpPrefix& destination : rail.routes) {
    CniRoute route;
    route.destination = destination;
    route.gateway = gateway;
    routes.push_back(route);
  }
  return routes;
}

Result<IpAddress> AddressOfVf(const RangeSet& ranges, int vf, const std::string& where) {
  const auto address = ranges.At(static_cast<std::uint64_t>(vf));
  if (address) return *address;
  return Fail(ErrorCode::kInvalid,
              where + ": VF " + std::to_string(vf) + " has no address: this node has " +
                  std::to_string(ranges.Size()) + ", " + ranges.ToString(),
              "give the node a range with an address for every VF");
}

Result<AddressPlan> PlanByRail(const PoolFields& fields, bool listed, FabricSource& source) {
  const Fabric& fabric = *RH_TRY(source.For(fields));
  const Rail& rail = *RH_TRY(FindRail(fabric, fields, source.path()));
  const std::string where = source.path() + ": rail '" + rail.name + "'";
  if (!rail.subnet) {
    Error error = WhyNoSubnet(fabric);
    error.message.insert(0, where + " ");
    return Fail(std::move(error));
  }
  RangeSpec spec;
  spec.ranges = RH_TRY(RangesOfNode(fabric, rail, where, source));
  spec.subnet = rail.NetworkOf(spec.ranges.front().first);
  if (!fields.gateway) RH_TRY_WRAP(CheckGatewayIn(rail, spec.subnet), where);
  const auto gateway = rail.GatewayOf(spec.subnet);
  spec.gateway = fields.gateway ? fields.gateway : gateway;
  spec.exclusions = ExclusionsFor(spec.subnet, fields);
  const auto excluded = rail.ExcludedFrom(spec.ranges);
  spec.exclusions.insert(spec.exclusions.end(), excluded.begin(), excluded.end());
  AddressPlan plan;
  plan.ifname = fields.ifname;
  plan.mac = fields.mac;
  if (fields.routes) {
    plan.routes.assign(fields.routes->begin(), fields.routes->end());
  } else if (!listed) {
    plan.routes = RoutesOf(rail, spec.gateway);
  }
  const int reuse_delay = fabric.reuse_delay_seconds.value_or(kDefaultReuseDelaySeconds);
  const ReuseDelays delays = ReuseDelaysOf(fields, reuse_delay, fabric.min_reuse_delay_seconds);
  auto choice = RH_TRY(MakeChoice(spec, where, delays));
  // What this network says by itself is no change of the part, nor is a fabric file that only some networks
  // name.
  const bool is_of_node = source.path() == kFabricPath;
  auto part = RH_TRY_WRAP(
      RailPartOf(rail.name, {spec.subnet, spec.ranges, excluded, gateway}, std::chrono::seconds(reuse_delay)),
      where);
  if (is_of_node) choice.pool.part = std::move(part);
  plan.deterministic = fabric.address_policy == AddressPolicy::kDeterministic;
  if (plan.deterministic && fields.vf) {
    plan.fixed_address = RH_TRY(AddressOfVf(choice.pool.ranges, *fields.vf, where));
  }
  plan.choices.push_back(std::move(choice));
  return plan;
}

bool InSubnet(const PoolChoice& choice, const FixedAddress& request) {
  return choice.pool.ranges.subnet().Contains(request.address);
}

std::string DisplayName(const FixedAddress& request) {
  return "requested address " + request.address.ToString();
}

Result<void> CheckLength(const PoolChoice& choice, const FixedAddress& request) {
  const IpPrefix& subnet = choice.pool.ranges.subnet();
  if (!request.length || *request.length == subnet.length) return {};
  return Fail(ErrorCode::kInvalid,
              DisplayName(request) + "/" + std::to_string(*request.length) +
                  " is of another prefix length than " + "its subnet " + subnet.ToString(),
              "write " + request.address.ToString());
}

// Why no pool has the address; `near` is the plan whose subnet contains it.
Error Refusal(const std::vector<AddressPlan>& plans, const AddressPlan* near, const FixedAddress& request) {
  if (near == nullptr) {
    std::vector<std::string> subnets;
    for (const AddressPlan& plan : plans) {
      for (const PoolChoice& choice : plan.choices) subnets.push_back(choice.pool.name);
    }
    return {ErrorCode::kInvalid, DisplayName(request) + " is in none of the subnets of this attachment",
            "it has: " + Join(subnets, ", "), 0};
  }
  if (near->deterministic && near->fixed_address) {
    return {ErrorCode::kInvalid,
            DisplayName(request) + ": by the fabric's policy 'deterministic' this VF's is " +
                near->fixed_address->ToString(),
            "ask for that one or for none", 0};
  }
  if (near->fixed_address) {
    return {
        ErrorCode::kInvalid,
        DisplayName(request) + ": " + near->fixed_address->ToString() + " is asked for in its place already",
        "ask for as many addresses of a subnet as the attachment has links in it", 0};
  }
  std::vector<std::string> ranges;
  for (const PoolChoice& choice : near->choices) ranges.push_back(choice.pool.ranges.ToString());
  return {ErrorCode::kInvalid,
          DisplayName(request) + " is in subnet " + near->choices.front().pool.name +
              ", but not one that may be given: gateway, excluded, or of another node",
          "this node gives " + Join(ranges, ", "), 0};
}

// Puts every request into the plan that can meet it: the first one with a pool that contains the address.
// With several links, that is the link with the matching subnet. kInvalid names the addresses that may be
// asked for.
Result<void> AssignFixedAddresses(const std::vector<FixedAddress>& requests,
                                  std::vector<AddressPlan>& plans) {
  for (const FixedAddress& request : requests) {
    const AddressPlan* near = nullptr;
    AddressPlan* taker = nullptr;
    for (AddressPlan& plan : plans) {
      for (const PoolChoice& choice : plan.choices) {
        if (!InSubnet(choice, request)) continue;
        RH_TRY(CheckLength(choice, request));
        if (near == nullptr) near = &plan;
        // The fabric's policy has already chosen this address for the plan.
        if (plan.deterministic && plan.fixed_address == request.address) taker = &plan;
        if (!plan.fixed_address && taker == nullptr && choice.pool.ranges.Contains(request.address))
          taker = &plan;
      }
    }
    if (taker == nullptr) return Fail(Refusal(plans, near, request));
    taker->fixed_address = request.address;
  }
  return {};
}

// A router has to be reachable on a subnet of its link.
Result<void> CheckRoutes(const PoolFields& fields, const AddressPlan& of, const IpamPlan& plan) {
  for (const CniRoute& route : of.routes) {
    if (!route.gateway) continue;
    std::vector<std::string> subnets;
    bool reachable =
        std::ranges::any_of(plan.also, [&](const CniIp& ip) { return ip.address.Contains(*route.gateway); });
    for (const AddressPlan& other : plan.addresses) {
      if (other.ifname != of.ifname) continue;
      for (const PoolChoice& choice : other.choices) {
        subnets.push_back(choice.pool.name);
        reachable = reachable || choice.pool.ranges.subnet().Contains(*route.gateway);
      }
    }
    if (reachable) continue;
    return Fail(ErrorCode::kInvalid,
                fields.where + ": route " + route.destination.ToString() + ": gw " +
                    route.gateway->ToString() + " is not in subnet " + Join(subnets, " or "),
                "a router has to be reachable on the subnet itself");
  }
  return {};
}

}  // namespace

Result<IpamPlan> ResolveIpam(const std::string& config, const CniArgs& args, const Root& root) {
  const IpamFields fields = RH_TRY(ReadIpamFields(config, args));
  FabricSource source(root, fields.fabric);
  IpamPlan plan;
  plan.listed = fields.listed;
  plan.also = fields.also;
  plan.dns = fields.dns;
  if (const std::string& path = fields.resolv_conf; !path.empty()) {
    plan.dns = RH_TRY_WRAP(DnsOfResolvConf(root, path), "network configuration: /ipam");
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (const PoolFields& pool : fields.pools) {
    AddressPlan one =
        pool.rail ? RH_TRY(PlanByRail(pool, fields.listed, source)) : RH_TRY(PlanInline(pool, source));
    for (const PoolChoice& choice : one.choices) {
      if (seen.emplace(one.ifname, choice.pool.name).second) continue;
      return Fail(ErrorCode::kInvalid,
                  pool.where + ": '" + one.ifname + "' has an address of " + choice.pool.name + " already",
                  "list it once, or give the other link its own name; ranges of one subnet stand in one set");
    }
    one.where = pool.where;
    plan.addresses.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < plan.addresses.size(); ++i) {
    RH_TRY(CheckRoutes(fields.pools[i], plan.addresses[i], plan));
  }
  RH_TRY(AssignFixedAddresses(fields.requests, plan.addresses));
  return plan;
}

Result<IpamPlan> ResolvePools(const std::string& config, const CniArgs& args, const Root& root) {
  IpamPlan plan = RH_TRY(ResolveIpam(config, args, root));
  for (const AddressPlan& address : plan.addresses) {
    if (!address.deterministic || address.fixed_address) continue;
    return Fail(ErrorCode::kInvalid,
                address.where +
                    ": the fabric's policy 'deterministic' needs the index of the VF ('vf'), "
                    "which is missing",
                "below railhead each VF has one; a PF has none: put it on a rail of another fabric file");
  }
  if (!plan.addresses.empty()) return plan;
  return Fail(ErrorCode::kInvalid,
              "network configuration: /ipam: has none of 'rail', 'subnet', 'ranges' and 'links'",
              "name a rail of the fabric, or give a subnet; below railhead the rail is known");
}

}  // namespace railhead::ipam
