#include "ipam/plugin/fields.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/protocol/cni_args.h"
#include "cni/protocol/cni_request.h"
#include "ipam/plugin/fields_shape.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::ipam {
namespace {

using record::Complain;

constexpr const char* kWhat = "network configuration";

std::string Where(const std::string& pointer) {
  return std::string(kWhat) + ": /" + pointer;
}

void CheckNetwork(const IpPrefix& subnet, const Complain& complain) {
  if (subnet.Network() != subnet) {
    complain("subnet", "'" + subnet.ToString() + "' has host bits set",
             "write " + subnet.Network().ToString());
  }
}

// The fields that exclude each other.
struct Beside {
  const char* other;
  const char* hint;
  const Complain& complain;

  void Refuse(const char* key, bool is_given) const {
    if (is_given) complain(key, std::string("cannot be given together with '") + other + "'", hint);
  }
  void Refuse(const SubnetFields& range) const {
    Refuse("subnet", range.subnet.has_value());
    Refuse("rangeStart", range.first.has_value());
    Refuse("rangeEnd", range.last.has_value());
  }
  void RefuseRanges(const IpamObject& ipam) const {
    Refuse(ipam.range);
    Refuse("ranges", !ipam.ranges.empty());
    Refuse("range", ipam.cluster_range.of_cluster);
    Refuse("ipRanges", !ipam.cluster_ranges.empty());
  }
};

constexpr const char* kRailKnows =
    "the fabric knows the rail's subnet and this node's range: remove one of the two";

RangeFields RangeOf(const SubnetFields& fields, std::string where) {
  RangeFields range;
  range.where = std::move(where);
  range.subnet = *fields.subnet;
  range.first = fields.first;
  range.last = fields.last;
  return range;
}

// The reuse delays and exclusions of `ipam` hold for all.
std::vector<PoolFields> PoolsOfLinks(const IpamObject& ipam) {
  std::vector<PoolFields> pools;
  for (const LinkFields& link : *ipam.links) {
    PoolFields pool = link.pool;
    pool.where = Where(PointerOf("ipam", "links", pools.size()));
    pool.ifname = link.ifname;
    if (link.range.subnet) {
      pool.ranges.push_back(RangeOf(link.range, pool.where));
      pool.ranges.back().gateway = pool.gateway;
    }
    pool.exclude_of_all = ipam.common.exclude;
    if (!pool.reuse_delay_seconds) pool.reuse_delay_seconds = ipam.common.reuse_delay_seconds;
    if (!pool.min_reuse_delay_seconds) pool.min_reuse_delay_seconds = ipam.common.min_reuse_delay_seconds;
    pools.push_back(std::move(pool));
  }
  return pools;
}

void AddSets(std::vector<RangeSetFields> given, const std::string& pointer,
             std::vector<RangeSetFields>& sets) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::size_t j = 0; j < given[i].size(); ++j) {
      given[i][j].where = Where(pointer + "/" + PointerOf(i, j));
      given[i][j].first_is_gateway = true;
    }
    sets.push_back(std::move(given[i]));
  }
}

void AddRange(RangeFields range, std::string where, std::vector<RangeSetFields>& sets) {
  range.where = std::move(where);
  sets.push_back({std::move(range)});
}

// All sets: each gives one address. The runtime's come first, as with host-local.
std::vector<RangeSetFields> SetsOf(const IpamObject& ipam, const RuntimeRanges& runtime) {
  std::vector<RangeSetFields> sets;
  AddSets(runtime.ranges, "runtimeConfig/ipRanges", sets);
  if (ipam.range.subnet) sets.push_back({RangeOf(ipam.range, Where("ipam"))});
  AddSets(ipam.ranges, "ipam/ranges", sets);
  if (ipam.cluster_range.of_cluster) AddRange(ipam.cluster_range, Where("ipam"), sets);
  for (std::size_t i = 0; i < ipam.cluster_ranges.size(); ++i)
    AddRange(ipam.cluster_ranges[i], Where(PointerOf("ipam", "ipRanges", i)), sets);
  return sets;
}

// Gives the gateway of `ipam` to the subnets that contain it and have none of their own.
Result<void> PlaceGateway(const IpAddress& gateway, std::vector<RangeSetFields>& sets) {
  bool placed = false;
  for (RangeSetFields& set : sets) {
    for (RangeFields& range : set) {
      if (!range.subnet.Contains(gateway)) continue;
      if (!range.gateway) range.gateway = gateway;
      placed = true;
    }
  }
  if (placed || sets.empty()) return {};
  return Fail(ErrorCode::kInvalid,
              Where("ipam/gateway") + ": gateway " + gateway.ToString() + " is not in subnet " +
                  sets.front().front().subnet.ToString() +
                  (sets.size() > 1 ? " or another one given here" : ""),
              "give a gateway inside the subnet, or none");
}

std::vector<PoolFields> PoolsOfSets(std::vector<RangeSetFields> sets, const IpamObject& ipam) {
  std::vector<PoolFields> pools;
  for (RangeSetFields& set : sets) {
    PoolFields pool = ipam.common;
    pool.where = Where("ipam");
    pool.gateway.reset();
    pool.node_slice = ipam.node_slice;
    if (sets.size() > 1 || set.size() > 1) pool.exclude_of_all = std::exchange(pool.exclude, {});
    if (!pools.empty()) pool.routes.reset();  // of the attachment, so once
    for (RangeFields& range : set) {
      // A subnet of one or two addresses has none to spare.
      const bool spare = range.subnet.length < range.subnet.address.Bits() - 1;
      if (range.first_is_gateway && !range.gateway && spare) range.gateway = range.subnet.First().Plus(1);
    }
    pool.ranges = std::move(set);
    pools.push_back(std::move(pool));
  }
  return pools;
}

Result<std::vector<PoolFields>> PoolsOf(const IpamObject& ipam, const RuntimeRanges& runtime) {
  if (ipam.links) return PoolsOfLinks(ipam);
  if (ipam.common.rail) {
    PoolFields pool = ipam.common;
    pool.where = Where("ipam");
    return std::vector{std::move(pool)};
  }
  auto sets = SetsOf(ipam, runtime);
  if (ipam.common.gateway) RH_TRY(PlaceGateway(*ipam.common.gateway, sets));
  return PoolsOfSets(std::move(sets), ipam);
}

void ListNextHops(const std::string& of_network, std::vector<PoolFields>* pools) {
  std::vector<IpAddress> hops;
  const auto add = [&](const std::optional<IpAddress>& hop) {
    if (hop) hops.push_back(*hop);
  };
  add(IpAddress::Parse(of_network));
  for (const PoolFields& pool : *pools) {
    add(pool.gateway);
    for (const RangeFields& range : pool.ranges) add(range.gateway);
    for (const CniRoute& route : pool.routes.value_or(std::vector<RouteFields>{})) add(route.gateway);
  }
  for (PoolFields& pool : *pools) pool.next_hops = hops;
}

}  // namespace

void ClusterRangeForm::Read(const JsonValue& json, ClusterRange& range) {
  const auto text = json.String();
  if (!text) return;
  const auto dash = text->find('-');
  const auto prefix = IpPrefix::Parse(dash == std::string::npos ? *text : text->substr(dash + 1));
  const auto first = IpAddress::Parse(text->substr(0, dash));
  const bool is_range = dash != std::string::npos;
  if (!prefix || (is_range && (!first || !prefix->Network().Contains(*first)))) {
    return json.Fail("'" + *text + "' is not a range",
                     "write 10.0.0.0/24, or 10.0.0.10-10.0.0.20/24 for a part");
  }
  range.of_cluster = true;
  range.subnet = prefix->Network();
  if (!is_range) return;
  range.first = first;
  range.last = prefix->address;
}

void NodeSliceForm::Read(const JsonValue& json, IpamObject& ipam) {
  const auto text = json.String();
  if (!text) return;
  const auto length = ParseInt(text->starts_with('/') ? text->substr(1) : *text);
  if (!length || *length < 1 || *length > 128)
    return json.Fail("'" + *text + "' is not a prefix length", "such as /26");
  ipam.node_slice = static_cast<int>(*length);
}

void CheckSets(const char* key, const std::vector<RangeSetFields>& sets, const Complain& complain) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].empty()) {
      complain(PointerOf(key, i), "is an empty set",
               R"(write a list of lists: [[{"subnet": "10.0.0.0/24"}]])");
    }
    for (const RangeFields& range : sets[i]) {
      if (range.subnet.address.IsV4() != sets[i].front().subnet.address.IsV4())
        complain(PointerOf(key, i), "mixes IPv4 and IPv6 in one set", "give each family a set of its own");
    }
  }
}

Result<IpamFields> ReadIpamFields(const std::string& config, const CniArgs& args) {
  const auto document = RH_TRY(JsonDocument::Parse(config, kWhat));
  JsonReader root = document.Root();
  IpamObject ipam;
  RuntimeRanges runtime;
  record::ReadField(root, "ipam", ipam,
                    {.need = Need::kPresent, .hint = R"(give {"type": "railhead-ipam", ...})"}, true);
  record::ReadField(root, "runtimeConfig", runtime, {}, true);
  if (!runtime.ranges.empty() && (ipam.common.rail || ipam.links)) {
    root.FailWithin("runtimeConfig/ipRanges", "cannot be given together with 'rail' or 'links'",
                    "remove the capability ipRanges: the fabric knows the ranges");
  }
  IpamFields fields;
  fields.fabric = kFabricPath;
  // railhead hands its whole configuration down; other plugins' top-level
  // fields are their own.
  if (root.String("type") == "railhead") fields.fabric = root.String("fabric").value_or(fields.fabric);
  if (!ipam.fabric.empty()) fields.fabric = ipam.fabric;
  fields.requests = ReadFixedAddresses(root, args);
  RH_TRY(root.status());
  fields.listed = ipam.links.has_value();
  fields.pools = RH_TRY(PoolsOf(ipam, runtime));
  ListNextHops(root.String("gateway").value_or(""), &fields.pools);
  fields.also.assign(ipam.also.begin(), ipam.also.end());
  fields.dns = std::move(ipam.dns);
  fields.resolv_conf = std::move(ipam.resolv_conf);
  return fields;
}

}  // namespace railhead::ipam

void railhead::Shape<railhead::ipam::SubnetFields>::Check(const T& range, const record::Complain& complain) {
  if (range.subnet) ipam::CheckNetwork(*range.subnet, complain);
}

void railhead::Shape<railhead::ipam::RangeFields>::Check(const T& range, const record::Complain& complain) {
  ipam::CheckNetwork(range.subnet, complain);
}

void railhead::Shape<railhead::ipam::LinkFields>::Check(const T& link, const record::Complain& complain) {
  if (!IsInterfaceName(link.ifname))
    complain("ifname", "is not an interface name", "1 to 15 characters, no '/', ':', '%' or blanks");
  if (link.pool.rail) ipam::Beside{"rail", ipam::kRailKnows, complain}.Refuse(link.range);
  if (!link.pool.rail && !link.range.subnet)
    complain("", "has neither 'rail' nor 'subnet'", "name a rail of the fabric, or give a subnet");
}

void railhead::Shape<railhead::ipam::IpamObject>::Check(const T& object, const record::Complain& complain) {
  if (object.links) {
    const ipam::Beside links{"links", "say it for each of the links", complain};
    links.RefuseRanges(object);
    links.Refuse("rail", object.common.rail.has_value());
    links.Refuse("gateway", object.common.gateway.has_value());
    links.Refuse("routes", object.common.routes.has_value());
    links.Refuse("vf", object.common.vf.has_value());
    links.Refuse("mac", object.common.mac.has_value());
  } else if (object.common.rail) {
    ipam::Beside{"rail", ipam::kRailKnows, complain}.RefuseRanges(object);
  }
  ipam::CheckSets("ranges", object.ranges, complain);
  if (!object.dns.empty())
    ipam::Beside{"dns", "remove one of the two", complain}.Refuse("resolvConf", !object.resolv_conf.empty());
}
