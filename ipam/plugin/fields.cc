#include "ipam/plugin/fields.h"

#include <limits>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/protocol/plugin.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

constexpr std::int64_t kMaxRestSeconds = std::int64_t{30} * 24 * 3600;
constexpr std::int64_t kMaxMtu = 65535;
constexpr std::int64_t kMaxVf = 65535;  // sriov_numvfs has 16 bits
constexpr const char* kWhat = "network configuration";

std::optional<int> ReadInt(JsonReader& reader, const std::string& key, std::int64_t max) {
  const auto value = reader.Int(key, 0, max);
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

std::vector<CniRoute> ReadRoutes(JsonReader& pool) {
  std::vector<CniRoute> routes;
  for (JsonReader& entry : pool.Objects("routes")) {
    CniRoute route;
    const auto destination = ReadPrefix(entry, "dst");
    if (destination) route.destination = destination->Network();
    if (!destination && !entry.Has("dst")) entry.Fail("dst", "is missing");
    route.gateway = ReadAddress(entry, "gw");
    route.mtu = ReadInt(entry, "mtu", kMaxMtu);
    route.advmss = ReadInt(entry, "advmss", kMaxMtu);
    route.priority = ReadInt(entry, "priority", std::numeric_limits<int>::max());
    route.table = ReadInt(entry, "table", std::numeric_limits<int>::max());
    route.scope = ReadInt(entry, "scope", std::numeric_limits<std::uint8_t>::max());
    entry.Close();
    routes.push_back(route);
  }
  return routes;
}

// What says which addresses, but for subnets and ranges: the same in `ipam` and in an entry
// of `links`.
PoolFields ReadShared(JsonReader& reader) {
  PoolFields pool;
  pool.where = std::string(kWhat) + ": " + reader.pointer();
  pool.rail = reader.String("rail");
  pool.gateway = ReadAddress(reader, "gateway");
  pool.vf = ReadInt(reader, "vf", kMaxVf);
  pool.exclude = ReadExclude(reader, "exclude");
  const bool has_routes = reader.Has("routes");
  auto routes = ReadRoutes(reader);
  if (has_routes) pool.routes = std::move(routes);
  pool.rest_seconds = reader.Int("restSeconds", 0, kMaxRestSeconds);
  pool.min_rest_seconds = reader.Int("minRestSeconds", 0, kMaxRestSeconds);
  return pool;
}

void Refuse(JsonReader& reader, const std::vector<const char*>& keys, const std::string& beside,
            const std::string& hint) {
  for (const char* key : keys) {
    if (reader.Has(key)) reader.Fail(key, "cannot be given together with '" + beside + "'", hint);
  }
}

void RefuseBesideRail(JsonReader& reader) {
  Refuse(reader, {"subnet", "rangeStart", "rangeEnd", "ranges", "range", "ipRanges"}, "rail",
         "the fabric knows the rail's subnet and this node's range: remove one of the two");
}

PoolFields ReadLink(JsonReader& entry, const PoolFields& common) {
  const std::string ifname = entry.RequiredString("ifname");
  if (!ifname.empty() && !IsInterfaceName(ifname)) {
    entry.Fail("ifname", "is no interface name", "1 to 15 characters, no '/', ':', '%' or blanks");
  }
  PoolFields pool = ReadShared(entry);
  pool.ifname = ifname;
  if (auto range = ReadRange(entry); range) {
    range->gateway = pool.gateway;
    pool.ranges.push_back(std::move(*range));
  }
  entry.Close();
  if (pool.rail) RefuseBesideRail(entry);
  if (!entry.Has("rail") && !entry.Has("subnet")) {
    entry.Fail("", "has neither 'rail' nor 'subnet'", "name a rail of the fabric, or give a subnet");
  }
  pool.exclude_of_all = common.exclude;
  if (!pool.rest_seconds) pool.rest_seconds = common.rest_seconds;
  if (!pool.min_rest_seconds) pool.min_rest_seconds = common.min_rest_seconds;
  return pool;
}

// `common` is what was read from `ipam` itself: exclude and the rests hold for all.
std::vector<PoolFields> ReadLinks(JsonReader& ipam, const PoolFields& common) {
  Refuse(
      ipam,
      {"rail", "subnet", "rangeStart", "rangeEnd", "ranges", "range", "ipRanges", "gateway", "routes", "vf"},
      "links", "say it for each of the links");
  std::vector<PoolFields> pools;
  for (JsonReader& entry : ipam.Objects("links")) pools.push_back(ReadLink(entry, common));
  if (pools.empty()) ipam.Fail("links", "is empty", "name at least one link");
  return pools;
}

// All sets of `ipam`: each gives one address.
std::vector<RangeSetFields> ReadSets(JsonReader& ipam, const PeerFields& peers) {
  std::vector<RangeSetFields> sets;
  if (auto range = ReadRange(ipam); range) sets.push_back({std::move(*range)});
  for (auto& set : ReadRangeSets(ipam, "ranges")) sets.push_back(std::move(set));
  sets.insert(sets.end(), peers.sets.begin(), peers.sets.end());
  return sets;
}

// The runtime's come first, as with host-local.
void PrependRuntimeSets(JsonReader& root, const JsonReader& ipam, std::vector<RangeSetFields>& sets) {
  auto runtime = root.Object("runtimeConfig");
  if (!runtime) return;
  auto first = ReadRangeSets(*runtime, "ipRanges");
  if (!first.empty() && (ipam.Has("rail") || ipam.Has("links"))) {
    runtime->Fail("ipRanges", "cannot be given together with 'rail' or 'links'",
                  "remove the capability ipRanges: the fabric knows the ranges");
  }
  sets.insert(sets.begin(), first.begin(), first.end());
}

// The gateway of `ipam` is that of the subnets that it is in.
void PlaceGateway(JsonReader& ipam, const IpAddress& gateway, std::vector<RangeSetFields>& sets) {
  bool placed = false;
  for (RangeSetFields& set : sets) {
    for (RangeFields& range : set) {
      if (!range.subnet.Contains(gateway)) continue;
      if (!range.gateway) range.gateway = gateway;
      placed = true;
    }
  }
  if (placed || sets.empty()) return;
  ipam.Fail("gateway",
            "gateway " + gateway.ToString() + " is not in subnet " + sets.front().front().subnet.ToString() +
                (sets.size() > 1 ? " or another one given here" : ""),
            "give a gateway inside the subnet, or none");
}

std::vector<PoolFields> PoolsOfSets(std::vector<RangeSetFields> sets, const PoolFields& common,
                                    const std::optional<int>& slice) {
  std::vector<PoolFields> pools;
  for (RangeSetFields& set : sets) {
    PoolFields pool = common;
    pool.gateway.reset();
    pool.node_slice = slice;
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

}  // namespace

Result<IpamFields> ReadIpamFields(const std::string& config, const CniArgs& args) {
  const auto document = RH_TRY(JsonDocument::Parse(config, kWhat));
  JsonReader root = document.Root();
  auto ipam = root.Object("ipam");
  if (!ipam) {
    if (!root.Has("ipam")) root.Fail("ipam", "is missing", R"(give {"type": "railhead-ipam", ...})");
    RH_TRY(root.status());
    return Fail(ErrorCode::kInvalid, std::string(kWhat) + ": /ipam: is missing");
  }
  IpamFields fields;
  fields.fabric = kFabricPath;
  // railhead hands its whole configuration down; other plugins' top-level
  // fields are their own.
  if (root.String("type") == "railhead") fields.fabric = root.String("fabric").value_or(fields.fabric);
  ipam->Ignore("type");
  // What DEL is told.
  ipam->Ignore("inUse");
  ipam->Ignore("inUseConfirmed");
  fields.fabric = ipam->String("fabric").value_or(fields.fabric);
  fields.listed = ipam->Has("links");
  ipam->Ignore("links");
  PoolFields common = ReadShared(*ipam);
  fields.peers = ReadPeerFields(*ipam);
  auto sets = ReadSets(*ipam, fields.peers);
  ipam->Close();
  PrependRuntimeSets(root, *ipam, sets);
  if (fields.listed) {
    fields.pools = ReadLinks(*ipam, common);
  } else if (common.rail) {
    RefuseBesideRail(*ipam);
    fields.pools.push_back(std::move(common));
  } else {
    if (common.gateway) PlaceGateway(*ipam, *common.gateway, sets);
    fields.pools = PoolsOfSets(std::move(sets), common, fields.peers.node_slice);
  }
  fields.requests = ReadAddressRequests(root, args);
  RH_TRY(root.status());
  return fields;
}

}  // namespace railhead
