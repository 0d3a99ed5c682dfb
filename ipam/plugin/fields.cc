#include "ipam/plugin/fields.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/protocol/plugin.h"
#include "netns/json/json_reader.h"

namespace railhead::ipam {
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

namespace {

constexpr const char* kPeerField = "network configuration: ";
// Of host-local, then of whereabouts.
constexpr const char* kWithoutEffect[] = {"dataDir",
                                          "configuration_path",
                                          "datastore",
                                          "enable_overlapping_ranges",
                                          "etcd_ca_cert_file",
                                          "etcd_cert_file",
                                          "etcd_host",
                                          "etcd_key_file",
                                          "etcd_password",
                                          "etcd_username",
                                          "kubernetes",
                                          "leader_lease_duration",
                                          "leader_renew_deadline",
                                          "leader_retry_period",
                                          "log_file",
                                          "log_level",
                                          "network_name",
                                          "reconciler_cron_expression",
                                          "sleep_for_race"};

// "10.0.0.7/24": all of the prefix; "10.0.0.10-10.0.0.20/24": these of it.
std::optional<RangeFields> ParseRange(const std::string& text) {
  const auto dash = text.find('-');
  const auto prefix = IpPrefix::Parse(dash == std::string::npos ? text : text.substr(dash + 1));
  if (!prefix) return std::nullopt;
  RangeFields range;
  range.subnet = prefix->Network();
  range.of_cluster = true;
  if (dash == std::string::npos) return range;
  range.first = IpAddress::Parse(text.substr(0, dash));
  range.last = prefix->address;
  if (!range.first || !range.subnet.Contains(*range.first)) return std::nullopt;
  return range;
}

// `range` with `range_start` and `range_end`; nullopt without a range.
std::optional<RangeFields> ReadWhereaboutsRange(JsonReader& reader) {
  const auto text = reader.String("range");
  const auto first = ReadAddress(reader, "range_start");
  const auto last = ReadAddress(reader, "range_end");
  if (!text) return std::nullopt;
  auto range = ParseRange(*text);
  if (!range) {
    reader.Fail("range", "'" + *text + "' is no range",
                "write 10.0.0.0/24, or 10.0.0.10-10.0.0.20/24 for these of it");
    return std::nullopt;
  }
  range->where = kPeerField + reader.pointer();
  if (!range->first) range->first = first;
  if (!range->last) range->last = last;
  return range;
}

std::vector<RangeSetFields> ReadWhereaboutsSets(JsonReader& ipam) {
  std::vector<RangeSetFields> sets;
  if (auto range = ReadWhereaboutsRange(ipam); range) sets.push_back({std::move(*range)});
  for (JsonReader& entry : ipam.Objects("ipRanges")) {
    auto range = ReadWhereaboutsRange(entry);
    auto exclude = ReadExclude(entry, "exclude");
    if (!range && !entry.Has("range")) entry.Fail("range", "is missing", "such as 10.0.0.0/24");
    entry.Close();
    if (!range) continue;
    range->exclude = std::move(exclude);
    sets.push_back({std::move(*range)});
  }
  return sets;
}

std::vector<CniIp> ReadAddresses(JsonReader& ipam) {
  std::vector<CniIp> addresses;
  for (JsonReader& entry : ipam.Objects("addresses")) {
    CniIp ip;
    if (const auto prefix = ReadPrefix(entry, "address"); prefix) ip.address = *prefix;
    if (!entry.Has("address")) entry.Fail("address", "is missing", "such as 10.0.0.7/24");
    ip.gateway = ReadAddress(entry, "gateway");
    entry.Close();
    addresses.push_back(ip);
  }
  return addresses;
}

// "/26" or "26"
std::optional<int> ReadNodeSlice(JsonReader& ipam) {
  const auto text = ipam.String("node_slice_size");
  if (!text || text->empty()) return std::nullopt;
  const char* begin = text->data() + (text->front() == '/' ? 1 : 0);
  const char* end = text->data() + text->size();
  int length = 0;
  const auto [stop, error] = std::from_chars(begin, end, length);
  if (error == std::errc() && stop == end && length >= 1 && length <= 128) return length;
  ipam.Fail("node_slice_size", "'" + *text + "' is no prefix length", "such as /26");
  return std::nullopt;
}

std::string ReadDns(JsonReader& ipam) {
  auto dns = ipam.Object("dns");
  if (!dns) return {};
  (void)dns->String("domain");
  for (const char* key : {"nameservers", "search", "options"}) (void)dns->Strings(key);
  dns->Close();
  return ipam.Raw("dns")->dump();
}

}  // namespace

PeerFields ReadPeerFields(JsonReader& ipam) {
  PeerFields fields;
  fields.sets = ReadWhereaboutsSets(ipam);
  fields.addresses = ReadAddresses(ipam);
  fields.node_slice = ReadNodeSlice(ipam);
  fields.dns = ReadDns(ipam);
  fields.resolv_conf = ipam.String("resolvConf").value_or("");
  if (!fields.dns.empty() && !fields.resolv_conf.empty()) {
    ipam.Fail("resolvConf", "cannot be given together with 'dns'", "remove one of the two");
  }
  for (const char* key : kWithoutEffect) ipam.Ignore(key);
  return fields;
}

namespace {

constexpr const char* kRangeField = "network configuration: ";

RangeFields ReadRangeOfSet(JsonReader& entry) {
  auto range = ReadRange(entry);
  if (!range && !entry.Has("subnet")) entry.Fail("subnet", "is missing", "such as 10.0.0.0/24");
  const auto gateway = ReadAddress(entry, "gateway");
  entry.Close();
  if (!range) return {};
  range->gateway = gateway;
  range->first_is_gateway = true;
  return std::move(*range);
}

}  // namespace

std::optional<IpAddress> ReadAddress(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  // Peers' configurations have "" where there is none.
  if (!text || text->empty()) return std::nullopt;
  auto address = IpAddress::Parse(*text);
  if (!address) reader.Fail(key, "'" + *text + "' is not an IP address");
  return address;
}

std::optional<IpPrefix> ReadPrefix(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text) return std::nullopt;
  auto prefix = IpPrefix::Parse(*text);
  if (!prefix)
    reader.Fail(key, "'" + *text + "' is not a prefix", "write ADDRESS/LENGTH, such as 10.0.0.0/24");
  return prefix;
}

std::vector<AddressRange> ReadExclude(JsonReader& reader, const std::string& key) {
  std::vector<AddressRange> exclude;
  const auto texts = reader.Strings(key);
  for (std::size_t i = 0; texts && i < texts->size(); ++i) {
    auto range = AddressRange::Parse((*texts)[i], "item " + std::to_string(i));
    if (range) {
      exclude.push_back(*range);
    } else {
      reader.Fail(key, range.error().message, range.error().hint);
    }
  }
  return exclude;
}

std::optional<RangeFields> ReadRange(JsonReader& reader) {
  RangeFields range;
  range.where = kRangeField + reader.pointer();
  const auto subnet = ReadPrefix(reader, "subnet");
  if (subnet && subnet->Network() != *subnet) {
    reader.Fail("subnet", "'" + subnet->ToString() + "' has host bits set",
                "write " + subnet->Network().ToString());
  }
  range.first = ReadAddress(reader, "rangeStart");
  range.last = ReadAddress(reader, "rangeEnd");
  if (!subnet) return std::nullopt;
  range.subnet = *subnet;
  return range;
}

std::vector<RangeSetFields> ReadRangeSets(JsonReader& reader, const std::string& key) {
  std::vector<RangeSetFields> sets;
  for (auto& list : reader.ObjectLists(key)) {
    RangeSetFields set;
    for (JsonReader& entry : list) set.push_back(ReadRangeOfSet(entry));
    if (set.empty())
      reader.Fail(key, "has an empty set", R"(write a list of lists: [[{"subnet": "10.0.0.0/24"}]])");
    for (const RangeFields& range : set) {
      if (range.subnet.address.IsV4() != set.front().subnet.address.IsV4()) {
        reader.Fail(key, "mixes IPv4 and IPv6 in one set", "give each family a set of its own");
      }
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace railhead::ipam
