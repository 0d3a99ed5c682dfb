#include "ipam/config.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/skel/json_reader.h"
#include "netns/base/node.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::int64_t kMaxRestSeconds = std::int64_t{30} * 24 * 3600;
constexpr std::int64_t kMaxMtu = 65535;

// The `ipam` object as written.
struct IpamFields {
  std::optional<std::string> rail;
  std::string fabric = kFabricPath;
  std::optional<IpPrefix> subnet;
  std::optional<IpAddress> range_start;
  std::optional<IpAddress> range_end;
  std::optional<IpAddress> gateway;
  std::vector<AddressRange> exclude;
  std::optional<std::vector<CniRoute>> routes;
  std::optional<std::int64_t> rest_seconds;
};

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

std::vector<CniRoute> ReadRoutes(JsonReader& ipam) {
  std::vector<CniRoute> routes;
  for (JsonReader& entry : ipam.Objects("routes")) {
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

std::vector<AddressRange> ReadExclude(JsonReader& ipam) {
  std::vector<AddressRange> exclude;
  const auto texts = ipam.Strings("exclude");
  for (std::size_t i = 0; texts && i < texts->size(); ++i) {
    auto range = AddressRange::Parse((*texts)[i], "item " + std::to_string(i));
    if (range) {
      exclude.push_back(*range);
    } else {
      ipam.Fail("exclude", range.error().message, range.error().hint);
    }
  }
  return exclude;
}

// What cannot be said together.
void CheckFields(JsonReader& ipam, const IpamFields& fields) {
  if (fields.rail) {
    for (const char* key : {"subnet", "rangeStart", "rangeEnd"}) {
      if (!ipam.Has(key)) continue;
      ipam.Fail(key, "cannot be given together with 'rail'",
                "the fabric knows the rail's subnet and this node's range: remove one of the two");
    }
  } else if (!ipam.Has("subnet")) {
    ipam.Fail("", "has neither 'rail' nor 'subnet'",
              "name a rail of " + fields.fabric + ", or give a subnet; below railhead the rail is known");
  }
}

Result<IpamFields> ReadFields(const std::string& config) {
  const auto document = RH_TRY(JsonDocument::Parse(config, "network configuration"));
  JsonReader root = document.Root();
  auto ipam = root.Object("ipam");
  if (!ipam) {
    if (!root.Has("ipam")) root.Fail("ipam", "is missing", R"(give {"type": "railhead-ipam", ...})");
    RH_TRY(root.status());
    return Fail(ErrorCode::kInvalid, "network configuration: /ipam: is missing");
  }
  IpamFields fields;
  // railhead hands its whole configuration down; other plugins' top-level
  // fields are their own.
  if (root.String("type") == "railhead") fields.fabric = root.String("fabric").value_or(fields.fabric);
  ipam->Ignore("type");
  fields.rail = ipam->String("rail");
  fields.fabric = ipam->String("fabric").value_or(fields.fabric);
  fields.subnet = ReadPrefix(*ipam, "subnet");
  if (fields.subnet && fields.subnet->Network() != *fields.subnet) {
    ipam->Fail("subnet", "'" + fields.subnet->ToString() + "' has host bits set",
               "write " + fields.subnet->Network().ToString());
  }
  fields.range_start = ReadAddress(*ipam, "rangeStart");
  fields.range_end = ReadAddress(*ipam, "rangeEnd");
  fields.gateway = ReadAddress(*ipam, "gateway");
  fields.exclude = ReadExclude(*ipam);
  const bool has_routes = ipam->Has("routes");
  auto routes = ReadRoutes(*ipam);
  if (has_routes) fields.routes = std::move(routes);
  fields.rest_seconds = ipam->Int("restSeconds", 0, kMaxRestSeconds);
  ipam->Close();
  CheckFields(*ipam, fields);
  RH_TRY(root.status());
  return fields;
}

Result<IpamPlan> MakePlan(const RangeSpec& spec, const std::string& where, std::int64_t rest_seconds,
                          std::vector<CniRoute> routes) {
  RangeSet ranges = RH_TRY_WRAP(RangeSet::Make(spec), where);
  for (const CniRoute& route : routes) {
    if (route.gateway && !spec.subnet.Contains(*route.gateway)) {
      return Fail(ErrorCode::kInvalid,
                  where + ": route " + route.destination.ToString() + ": gw " + route.gateway->ToString() +
                      " is not in subnet " + spec.subnet.Network().ToString(),
                  "a router has to be reachable on the subnet itself");
    }
  }
  std::string name = ranges.subnet().ToString();
  return IpamPlan{{std::move(name), std::move(ranges), std::chrono::seconds(rest_seconds)},
                  spec.gateway,
                  std::move(routes)};
}

Result<IpamPlan> PlanInline(const IpamFields& fields) {
  RangeSpec spec;
  spec.subnet = *fields.subnet;
  spec.gateway = fields.gateway;
  spec.exclusions = fields.exclude;
  if (fields.range_start || fields.range_end) {
    const IpAddress first = fields.range_start.value_or(spec.subnet.First());
    const IpAddress last = fields.range_end.value_or(spec.subnet.Last());
    if (last < first || first.IsV4() != last.IsV4()) {
      return Fail(ErrorCode::kInvalid, "network configuration: /ipam: rangeStart " + first.ToString() +
                                           " is not before rangeEnd " + last.ToString());
    }
    spec.ranges.push_back({first, last});
  }
  return MakePlan(spec, "network configuration: /ipam", fields.rest_seconds.value_or(kDefaultRestSeconds),
                  fields.routes.value_or(std::vector<CniRoute>{}));
}

Result<Rail> FindRail(const Fabric& fabric, const std::string& name, const std::string& path) {
  if (const Rail* rail = fabric.FindRail(name); rail != nullptr) return *rail;
  std::vector<std::string> names;
  names.reserve(fabric.rails.size());
  for (const Rail& rail : fabric.rails) names.push_back(rail.name);
  const auto nearest = Nearest(name, names);
  return Fail(ErrorCode::kInvalid,
              "network configuration: /ipam/rail: " + path + " has no rail '" + name + "'",
              nearest ? "did you mean '" + *nearest + "'?" : "it has: " + Join(names, ", "));
}

Result<AddressRange> RangeOfThisNode(const Fabric& fabric, const Rail& rail, const std::string& where,
                                     const Root& root) {
  const std::string node = RH_TRY(NodeName(root));
  const auto index = fabric.IndexOf(node);
  if (const auto range = rail.RangeOf(node, index); range) return AddressRange{range->first, range->last};
  const std::string as_index = index ? " (index " + std::to_string(*index) + ")" : " (not listed in 'nodes')";
  return Fail(ErrorCode::kInvalid, where + " has no address range for node '" + node + "'" + as_index,
              "add the node to nodeRanges by name or index, or give nodeBlock and the node's index in nodes; "
              "the name comes from /etc/railhead/node-name, else it is the host name");
}

Result<IpamPlan> PlanByRail(const IpamFields& fields, const Root& root) {
  const auto fabric = RH_TRY(ReadFabric(root, fields.fabric));
  if (!fabric) {
    return Fail(ErrorCode::kInvalid,
                "network configuration: /ipam/rail: '" + *fields.rail + "' needs the fabric file " +
                    fields.fabric + ", which does not exist",
                "write it, or give subnet and range in the configuration");
  }
  const Rail rail = RH_TRY(FindRail(*fabric, *fields.rail, fields.fabric));
  const std::string where = fields.fabric + ": rail '" + rail.name + "'";
  if (!rail.subnet) return Fail(ErrorCode::kInvalid, where + " has no subnet", "add 'subnet' to the rail");
  RangeSpec spec;
  spec.subnet = *rail.subnet;
  spec.gateway = fields.gateway ? fields.gateway : rail.gateway;
  spec.ranges.push_back(RH_TRY(RangeOfThisNode(*fabric, rail, where, root)));
  spec.exclusions = fields.exclude;
  for (const IpRange& range : rail.exclude) spec.exclusions.push_back({range.first, range.last});
  std::vector<CniRoute> routes;
  if (fields.routes) {
    routes = *fields.routes;
  } else {
    for (const IpPrefix& destination : rail.routes) {
      CniRoute route;
      route.destination = destination;
      route.gateway = spec.gateway;
      routes.push_back(route);
    }
  }
  return MakePlan(spec, where, fields.rest_seconds.value_or(fabric->rest_seconds), std::move(routes));
}

}  // namespace

Result<IpamPlan> ResolveIpam(const std::string& config, const Root& root) {
  const IpamFields fields = RH_TRY(ReadFields(config));
  return fields.rail ? PlanByRail(fields, root) : PlanInline(fields);
}

}  // namespace railhead
