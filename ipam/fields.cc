#include "ipam/fields.h"

#include <limits>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/skel/json_reader.h"
#include "cni/skel/plugin.h"

namespace railhead {
namespace {

constexpr std::int64_t kMaxRestSeconds = std::int64_t{30} * 24 * 3600;
constexpr std::int64_t kMaxMtu = 65535;
constexpr const char* kWhat = "network configuration";

std::optional<IpAddress> ReadAddress(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text) return std::nullopt;
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

std::vector<AddressRange> ReadExclude(JsonReader& pool) {
  std::vector<AddressRange> exclude;
  const auto texts = pool.Strings("exclude");
  for (std::size_t i = 0; texts && i < texts->size(); ++i) {
    auto range = AddressRange::Parse((*texts)[i], "item " + std::to_string(i));
    if (range) {
      exclude.push_back(*range);
    } else {
      pool.Fail("exclude", range.error().message, range.error().hint);
    }
  }
  return exclude;
}

// All that says which addresses: the same in `ipam` and in an entry of `links`.
PoolFields ReadPool(JsonReader& reader) {
  PoolFields pool;
  pool.where = std::string(kWhat) + ": " + reader.pointer();
  pool.rail = reader.String("rail");
  pool.subnet = ReadPrefix(reader, "subnet");
  if (pool.subnet && pool.subnet->Network() != *pool.subnet) {
    reader.Fail("subnet", "'" + pool.subnet->ToString() + "' has host bits set",
                "write " + pool.subnet->Network().ToString());
  }
  pool.range_start = ReadAddress(reader, "rangeStart");
  pool.range_end = ReadAddress(reader, "rangeEnd");
  pool.gateway = ReadAddress(reader, "gateway");
  pool.exclude = ReadExclude(reader);
  const bool has_routes = reader.Has("routes");
  auto routes = ReadRoutes(reader);
  if (has_routes) pool.routes = std::move(routes);
  pool.rest_seconds = reader.Int("restSeconds", 0, kMaxRestSeconds);
  return pool;
}

// What cannot be said together.
void CheckPool(JsonReader& reader, const PoolFields& pool) {
  if (!pool.rail) return;
  for (const char* key : {"subnet", "rangeStart", "rangeEnd"}) {
    if (!reader.Has(key)) continue;
    reader.Fail(key, "cannot be given together with 'rail'",
                "the fabric knows the rail's subnet and this node's range: remove one of the two");
  }
}

PoolFields ReadLink(JsonReader& entry, const PoolFields& common) {
  const std::string ifname = entry.RequiredString("ifname");
  if (!ifname.empty() && !IsInterfaceName(ifname)) {
    entry.Fail("ifname", "is no interface name", "1 to 15 characters, no '/', ':' or blanks");
  }
  PoolFields pool = ReadPool(entry);
  pool.ifname = ifname;
  entry.Close();
  CheckPool(entry, pool);
  if (!entry.Has("rail") && !entry.Has("subnet")) {
    entry.Fail("", "has neither 'rail' nor 'subnet'", "name a rail of the fabric, or give a subnet");
  }
  pool.exclude_of_all = common.exclude;
  if (!pool.rest_seconds) pool.rest_seconds = common.rest_seconds;
  return pool;
}

// `common` is what was read from `ipam` itself: exclude and restSeconds hold for all.
std::vector<PoolFields> ReadLinks(JsonReader& ipam, const PoolFields& common) {
  for (const char* key : {"rail", "subnet", "rangeStart", "rangeEnd", "gateway", "routes"}) {
    if (ipam.Has(key)) {
      ipam.Fail(key, "cannot be given together with 'links'", "say it for each of the links");
    }
  }
  std::vector<PoolFields> pools;
  for (JsonReader& entry : ipam.Objects("links")) pools.push_back(ReadLink(entry, common));
  if (pools.empty()) ipam.Fail("links", "is empty", "name at least one link");
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
  fields.fabric = ipam->String("fabric").value_or(fields.fabric);
  fields.listed = ipam->Has("links");
  ipam->Ignore("links");
  PoolFields pool = ReadPool(*ipam);
  ipam->Close();
  if (fields.listed) {
    fields.pools = ReadLinks(*ipam, pool);
  } else {
    CheckPool(*ipam, pool);
    if (pool.rail || pool.subnet) fields.pools.push_back(std::move(pool));
  }
  fields.requests = ReadAddressRequests(root, args);
  RH_TRY(root.status());
  return fields;
}

}  // namespace railhead
