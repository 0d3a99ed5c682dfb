// Reads fabric.json into a Fabric: fields that have several forms, and checks for contradictions.
#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cni/fabric/fabric_shape.h"
#include "cni/fabric/node_pattern.h"
#include "cni/fabric/rail_routes.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

using Json = nlohmann::ordered_json;
using record::Complain;

constexpr std::size_t kMaxSwitchPattern = 255;  // of a switch's name
// NCCL's parser (src/misc/param.cc) cuts a value at 1,023 bytes.
constexpr std::size_t kMaxVariable = 1022;
constexpr int kMaxDscp = 63;
constexpr int kExampleDscp = 26;  // as most fabrics have for RoCE

// The value differs between pods, so one value for all of them would be wrong.
constexpr std::array<std::string_view, 7> kOfThePod = {
    "NCCL_IB_HCA",        "NCCL_IB_GID_INDEX",        "NCCL_IB_ADDR_FAMILY",
    "NCCL_IB_ADDR_RANGE", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_MERGE_VFS",
    "NCCL_TOPO_FILE"};

void CheckPrefix(const IpPrefix& prefix, const std::string& at, const Complain& complain) {
  if (prefix.Network() != prefix)
    complain(at, "'" + prefix.ToString() + "' has host bits set", "write " + prefix.Network().ToString());
}

void CheckNames(const Rail& rail, const Complain& complain) {
  // Interfaces get this name. Labels of metrics and logs contain it, too.
  if (std::ranges::any_of(rail.name, [](unsigned char c) { return c <= ' ' || c == 0x7f || c == '/'; }))
    complain("name", "holds a blank, a '/' or a control character", "for example rail0");
  // Whether a pattern is right can be seen only with a switch's name to match: fnmatch(3) accepts any
  // pattern.
  for (const std::string& name : rail.expected_switches) {
    if (name.empty() || name.size() > kMaxSwitchPattern)
      complain("expectedSwitches", "must not be empty, nor longer than 255 characters",
               R"(for example "leaf-*-1")");
  }
}

void CheckRoutes(const Rail& rail, const Complain& complain) {
  for (std::size_t i = 0; rail.routes_from == RouteSource::kWritten && i < rail.routes.size(); ++i) {
    const IpPrefix& route = rail.routes[i];
    CheckPrefix(route, PointerOf("routes", i), complain);
    if (rail.subnet && route.address.IsV6() != rail.subnet->address.IsV6())
      complain(PointerOf("routes", i), "'" + route.ToString() + "' is not of the subnet's address family");
  }
}

// `other` fits networks of two addresses only. Elsewhere a place is in every network.
void CheckGateway(const Rail& rail, const Complain& complain) {
  if (!rail.gateway || !rail.subnet) return;
  const std::string gateway = rail.gateway->ToString();
  if (rail.gateway->place == Gateway::Place::kAddress) {
    if (!rail.subnet->Contains(rail.gateway->address))
      complain("gateway", gateway + " is outside the subnet " + rail.subnet->ToString());
  } else if (!rail.GatewayOf(rail.NetworkOf(rail.subnet->address))) {
    complain("gateway",
             "'" + gateway + "' is in no network of length /" +
                 std::to_string(rail.node_subnet.value_or(rail.subnet->length)),
             rail.gateway->place == Gateway::Place::kOther
                 ? "'other' is of a /31 or /127: write first, last or an address"
                 : "such a network has one address: give the rail a larger subnet");
  }
}

// Each of them divides the subnet, so one is enough.
void CheckParts(const Rail& rail, const Complain& complain) {
  const auto check = [&](const char* key, const std::optional<int>& length, int longest) {
    if (!length) return;
    if (!rail.node_ranges.empty()) {
      complain(key, "cannot stand beside nodeRanges", "blocks and ranges of different nodes could overlap");
    } else if (rail.subnet && (*length < rail.subnet->length || *length > longest)) {
      complain(key, std::to_string(*length) + " does not divide " + rail.subnet->ToString());
    }
  };
  const int bits = rail.subnet ? rail.subnet->address.Bits() : 128;
  check("nodeBlock", rail.node_block, bits);
  check("nodeSubnet", rail.node_subnet, bits - 1);
  if (rail.node_block && rail.node_subnet)
    complain("nodeSubnet", "cannot stand beside nodeBlock",
             "nodeSubnet where each node has a router of its own, else nodeBlock");
  if (rail.probe_range && rail.node_subnet)
    complain("probeAddresses", "a range cannot stand beside nodeSubnet",
             R"(write "first" or "last", of each node's own network)");
}

void CheckSubnet(const Rail& rail, const Complain& complain) {
  if (rail.subnet) CheckPrefix(*rail.subnet, "subnet", complain);
  CheckGateway(rail, complain);
  CheckParts(rail, complain);
}

// A group of nodes may give what the base's rail lacks. A node that no group gives it has no address: ADD
// says so.
void CheckComplete(const Rail& rail, const std::string& at, const Complain& complain) {
  if (!rail.gateway && (rail.routes_from == RouteSource::kRails || !rail.routes.empty()))
    complain(at + "/routes", "needs a gateway", "give the rail its gateway");
  if (rail.subnet) return;
  if (rail.gateway) complain(at + "/gateway", "needs a subnet", "give the rail its subnet");
  if (!rail.node_ranges.empty() || rail.PartLength())
    complain(at + "/subnet", "is required with nodeRanges, nodeBlock or nodeSubnet");
}

// Ranges of different nodes must not overlap, nor those of one node.
void CheckNodeRanges(const Rail& rail, const Complain& complain) {
  std::vector<std::pair<IpRange, std::string>> taken;
  for (const auto& [node, ranges] : rail.node_ranges) {
    const std::string at = PointerOf("nodeRanges", node);
    for (const IpRange& range : ranges) {
      if (rail.subnet && !(rail.subnet->Contains(range.first) && rail.subnet->Contains(range.last)))
        complain(at, range.ToString() + " is outside the subnet " + rail.subnet->ToString());
      for (const auto& [other, owner] : taken) {
        if (range.last < other.first || other.last < range.first) continue;
        complain(at, range.ToString() + " overlaps " + other.ToString() + " of node '" + owner + "'");
      }
      taken.emplace_back(range, node);
    }
  }
}

// Why no probe endpoint can use the address; "": one can.
std::string ProbeAddressFault(const IpAddress& address, const Rail& rail) {
  if (!rail.subnet || !rail.subnet->Contains(address)) return " is outside the rail's subnet";
  if (rail.GatewayOf(rail.NetworkOf(address)) == address) return " is the gateway";
  return "";
}

void CheckProbeAddresses(const Rail& rail, const Complain& complain) {
  std::set<IpAddress> taken;
  for (const auto& [node, address] : rail.probe_addresses) {
    const std::string at = PointerOf("probeAddresses", node);
    if (const std::string fault = ProbeAddressFault(address, rail); !fault.empty())
      complain(at, address.ToString() + fault);
    if (!taken.insert(address).second)
      complain(at, "another node has the probe address " + address.ToString());
  }
  if (rail.probe_place && rail.node_ranges.empty() && !rail.PartLength())
    complain("probeAddresses", "is of a node's own addresses, and nothing divides the subnet among nodes",
             "give the rail nodeSubnet, nodeBlock or nodeRanges");
  if (!rail.probe_range) return;
  const IpRange& range = *rail.probe_range;
  for (const IpAddress& end : {range.first, range.last}) {
    if (!rail.subnet || !rail.subnet->Contains(end))
      return complain("probeAddresses", end.ToString() + ProbeAddressFault(end, rail));
  }
  if (const auto gateway = rail.GatewayOf(*rail.subnet); gateway && range.Contains(*gateway))
    complain("probeAddresses", "the gateway " + gateway->ToString() + " is in " + range.ToString());
  if (!rail.subnet->address.IsV6() &&
      (range.Contains(rail.subnet->First()) || range.Contains(rail.subnet->Last())))
    complain("probeAddresses",
             range.ToString() + " has the subnet's first or last address, which no host can have");
}

bool IsVariable(const std::string& name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool IsResourceName(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size() || text.size() > 200) return false;
  // Sockets and files get this name, too: neither part may be "..".
  for (const std::size_t end : {std::size_t{0}, slash - 1, slash + 1, text.size() - 1}) {
    if (std::isalnum(static_cast<unsigned char>(text[end])) == 0) return false;
  }
  return std::ranges::all_of(text,
                             [](unsigned char c) {
                               return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
                             }) &&
         text.find('/', slash + 1) == std::string::npos && text.find("kubernetes.io/") == std::string::npos;
}

void CheckPoolsRail(const Pool& pool, const Rail& rail, const std::string& at, const Complain& complain) {
  if (pool.device_nodes == DeviceNodeMode::kMount && rail.soft_roce) {
    complain(at + "/deviceNodes", "'mount' cannot serve the soft RoCE rail '" + rail.name + "'",
             "its uverbs node exists only after ADD: use cdi");
  }
  if (pool.device == PoolDevice::kPf && rail.vlan.value_or(0) != 0) {
    complain(at + "/device",
             "'pf' cannot serve rail '" + rail.name + "', which has VLAN " + std::to_string(*rail.vlan),
             "only a VF gets a VLAN: use vf, or have the switch port tag and remove `vlan` of the rail");
  }
}

void CheckPool(const Fabric& fabric, std::size_t i, const Complain& complain) {
  const Pool& pool = fabric.pools[i];
  const std::string at = PointerOf("pools", i);
  if (!IsResourceName(pool.resource)) {
    complain(at + "/resource", "'" + pool.resource + "' is not an extended resource name",
             "for example railhead.io/roce");
  }
  const auto same = std::ranges::find(fabric.pools, pool.resource, &Pool::resource);
  if (same != fabric.pools.begin() + static_cast<std::ptrdiff_t>(i))
    complain(at + "/resource", "another pool is called '" + pool.resource + "'");
  if (pool.late && pool.device_nodes == DeviceNodeMode::kMount) {
    complain(at + "/deviceNodes", "'mount' cannot serve slots: their devices are known only at ADD",
             "use cdi");
  }
  if (pool.late && pool.nccl_config != NcclConfigPolicy::kRequired) {
    complain(at + "/ncclConfig", "'off' cannot serve slots: a container could start without its device",
             "use required");
  }
  for (const auto& name : pool.rails) {
    const Rail* rail = fabric.FindRail(name);
    if (rail == nullptr) {
      complain(at + "/rails", "fabric.json has no rail '" + name + "'",
               fabric.of_node ? "a group that takes a rail away gives `pools` without it" : "");
    } else {
      CheckPoolsRail(pool, *rail, at, complain);
    }
  }
}

// Checks what a rail says about nodes, and what two rails must not share.
void CheckRailAmongOthers(const Fabric& fabric, std::size_t i, const Complain& complain) {
  const Rail& rail = fabric.rails[i];
  const std::string at = PointerOf("rails", i);
  for (std::size_t j = 0; j < i; ++j) {
    const Rail& other = fabric.rails[j];
    if (other.name == rail.name) complain(at + "/name", "another rail is called '" + rail.name + "'");
    if (other.table == rail.table)
      complain(at + "/table", "rail '" + other.name + "' has table " + std::to_string(rail.table));
  }
  // 253..255 are the kernel's default, main and local tables.
  if (rail.table >= 253 && rail.table <= 255) complain(at + "/table", "253, 254 and 255 are the kernel's");
  // A range by index and a range by name contradict each other if both are of the same node.
  for (const auto& [name, index] : fabric.nodes) {
    if (rail.node_ranges.contains(name) && rail.node_ranges.contains(std::to_string(index)))
      complain(at + "/nodeRanges", "node '" + name + "' has a range by name and one by its index");
  }
  if (!rail.probe_range) return;
  if (fabric.ClaimsIndices()) return;
  if (fabric.nodes.empty()) {
    return complain(
        at + "/probeAddresses", "a range needs an index for each node",
        "the node with index i has its i-th address: list the nodes in `nodes`, or let them claim "
        "indices (`addresses.index` from kubernetes, and a rail with nodeBlock)");
  }
  const auto& most = *std::ranges::max_element(
      fabric.nodes, [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto last = rail.probe_range->last.Minus(rail.probe_range->first);
  const auto position = rail.indices ? rail.indices->last - rail.indices->first : most.second;
  if (!last || static_cast<std::uint64_t>(position) <= *last) return;
  complain(at + "/probeAddresses",
           rail.probe_range->ToString() + " has no address for " +
               (rail.indices ? "index " + std::to_string(rail.indices->last)
                             : "node '" + most.first + "' with index " + std::to_string(most.second)));
}

void CheckNodeGroup(const Fabric& fabric, std::size_t i, const Complain& complain) {
  const NodeGroup& group = fabric.node_groups[i];
  const std::string at = PointerOf("nodeGroups", i);
  for (std::size_t j = 0; j < i; ++j) {
    const NodeGroup& other = fabric.node_groups[j];
    if (other.name == group.name) complain(at + "/name", "another group is called '" + group.name + "'");
    if (group.indices && other.indices && group.indices->Overlaps(*other.indices)) {
      complain(at + "/indices",
               group.indices->ToString() + " overlaps " + other.indices->ToString() + " of group '" +
                   other.name + "'",
               "two nodes could have one index: give each group its own");
    }
  }
  const auto rails = group.overrides.find("rails");
  if (rails == group.overrides.end()) return;
  std::vector<std::string> known;
  for (const Rail& rail : fabric.rails) known.push_back(rail.name);
  const Json changes = Json::parse(rails->second);
  for (const auto& [name, change] : changes.items()) {
    if (Contains(known, name)) continue;
    const auto near = Nearest(name, known);
    complain(at + "/" + PointerOf("rails", name), "the base has no rail '" + name + "'",
             near ? "did you mean " + *near + "?"
                  : "add it to the base's `rails`; `false` takes it from a group's nodes");
  }
}

void CheckPaths(const std::set<std::string>& paths, const char* key, const Complain& complain) {
  for (const std::string& path : paths) {
    if (!path.starts_with("/")) complain(key, "'" + path + "' is not an absolute path");
  }
}

}  // namespace

void PfForm::Read(const JsonValue& json, Rail& rail) {
  if (json.raw()->is_string() || json.raw()->is_array()) {
    rail.pfs = record::ReadValue<std::vector<std::string>>(json, {.filled = true, .or_one = true}, true)
                   .value_or(rail.pfs);
    if (Contains(rail.pfs, "")) json.Fail("must not be empty");
  } else if (const auto position = json.Int(0, 255)) {
    rail.position = static_cast<int>(*position);
  }
}

Json PfForm::Write(const Rail& rail) {
  if (rail.position) return *rail.position;
  if (rail.pfs.empty()) return nullptr;
  return rail.pfs.size() == 1 ? Json(rail.pfs.front()) : Json(rail.pfs);
}

Json PfForm::Schema() {
  const Json name{{"type", "string"}, {"minLength", 1}};
  return {{"anyOf",
           {name,
            {{"type", "array"}, {"items", name}, {"minItems", 1}},
            {{"type", "integer"}, {"minimum", 0}, {"maximum", 255}}}}};
}

void ProbeAddressesForm::Read(const JsonValue& json, Rail& rail) {
  if (json.raw()->is_string()) {
    rail.probe_place = FromWord<ProbePlace>(json.raw()->get<std::string>());
    if (rail.probe_place) return;
    rail.probe_range = record::ReadValue<IpRange>(
        json, {.hint = R"("first", "last", a range, or an object with each node's address)"}, true);
  } else {
    rail.probe_addresses =
        record::ReadValue<std::map<std::string, IpAddress>>(json, {}, true).value_or(rail.probe_addresses);
  }
}

Json ProbeAddressesForm::Write(const Rail& rail) {
  if (rail.probe_place) return WordOf(*rail.probe_place);
  if (rail.probe_range) return TextForm<IpRange>::Write(*rail.probe_range);
  return rail.probe_addresses.empty() ? Json() : ToJson(rail.probe_addresses);
}

Json ProbeAddressesForm::Schema() {
  return {{"anyOf",
           {{{"type", "string"}},
            {{"type", "object"}, {"additionalProperties", {{"type", {"string", "null"}}}}}}}};
}

void RoutesForm::Read(const JsonValue& json, Rail& rail) {
  if (json.raw()->is_string()) {
    if (*json.raw() == "rails")
      rail.routes_from = RouteSource::kRails;
    else
      json.Fail("is neither a list nor 'rails'", R"(for example ["10.100.0.0/16"])");
    return;
  }
  rail.routes_from = RouteSource::kWritten;
  rail.routes = record::ReadValue<std::vector<IpPrefix>>(json, kPrefixField, true).value_or(rail.routes);
}

Json RoutesForm::Write(const Rail& rail) {
  if (rail.routes_from == RouteSource::kRails) return "rails";
  return rail.routes_from == RouteSource::kWritten ? ToJson(rail.routes) : Json();
}

Json RoutesForm::Schema() {
  return {{"anyOf",
           {{{"type", "array"}, {"items", {{"type", "string"}}}}, {{"type", "string"}, {"const", "rails"}}}}};
}

void AddressIndexForm::Read(const JsonValue& json, Fabric& fabric) {
  auto index = json.Object();
  if (!index) return;
  const std::string from = index->String("from").value_or("nodes");
  if (from != "nodes" && from != "kubernetes")
    index->Fail("from", "'" + from + "' is not known", "nodes or kubernetes");
  fabric.index_from_kubernetes = from == "kubernetes";
  RawForm::Read(json, fabric);
}

void Shape<Rail>::Check(const Rail& rail, const Complain& complain) {
  CheckNames(rail, complain);
  if (rail.vlan_qos != 0 && rail.vlan.value_or(0) == 0) complain("vlanQoS", "needs a vlan other than 0");
  CheckSubnet(rail, complain);
  CheckRoutes(rail, complain);
  CheckNodeRanges(rail, complain);
  CheckProbeAddresses(rail, complain);
}

void Shape<NcclConfigOptions>::Check(const NcclConfigOptions& options, const Complain& complain) {
  const auto tuned = options.nccl.Lines();
  for (const auto& [name, value] : options.env) {
    const auto same = [name = name](const auto& line) { return line.first == name; };
    const std::string at = PointerOf("env", name);
    if (!IsVariable(name)) complain(at, "is not a variable name");
    if (Contains(kOfThePod, name))
      complain(at, "differs between pods", "remove it: Railhead writes it for each pod");
    if (value.size() > kMaxVariable || value.find_first_of("\r\n") != std::string::npos)
      complain(at, "must be one line of at most 1,022 bytes");
    if (std::ranges::any_of(tuned, same))
      complain(at, "is also set by a field of ncclConfig.nccl", "remove one of both");
  }
}

void Shape<NetworkRule>::Check(const NetworkRule& rule, const Complain& complain) {
  const auto keys = RestrictedKeys();
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const std::string& key : rule.keys) {
    if (key == "*" || Contains(known, key)) continue;
    const auto near = Nearest(key, known);
    complain("allow", "'" + key + "' is not a key that needs a permission",
             near ? "did you mean " + *near + "?" : "one of " + Join(known, ", ") + ", or *");
  }
  CheckPaths(rule.fabric_paths, "fabrics", complain);
  CheckPaths(rule.resolv_confs, "resolvConf", complain);
}

void Shape<NodeGroup>::Check(const NodeGroup& group, const Complain& complain) {
  for (std::size_t i = 0; i < group.nodes.size(); ++i) {
    const std::string fault = FaultOfNodePattern(group.nodes[i]);
    if (!fault.empty())
      complain(PointerOf("nodes", i), "the pattern '" + group.nodes[i] + "' " + fault,
               R"(for example "gpu-*" or "gpu-[001-032]")");
  }
  const auto rails = group.overrides.find("rails");
  if (rails == group.overrides.end()) return;
  const Json changes = Json::parse(rails->second);
  if (!changes.is_object()) {
    return complain("rails", "is not an object of rails by name",
                    R"(for example {"rail0": {"subnet": "10.100.32.0/22"}})");
  }
  for (const auto& [name, change] : changes.items()) {
    if (!change.is_object() && change != false)
      complain(PointerOf("rails", name), "is neither an object nor false", "false takes the rail away");
    for (const char* own : {"name", "index"}) {
      if (change.is_object() && change.contains(own))
        complain(PointerOf("rails", name, own), "is not a group's to give", "remove it");
    }
  }
}

void Shape<Fabric>::Complete(Fabric& fabric) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < fabric.rails.size(); ++i) {
    all.push_back(fabric.rails[i].name);
    if (fabric.rails[i].table == 0) fabric.rails[i].table = kFirstRailTable + static_cast<std::uint32_t>(i);
  }
  for (Rail& rail : fabric.rails) {
    if (rail.routes_from != RouteSource::kWritten) rail.routes = FollowingRoutes(fabric, rail);
  }
  // This policy needs no delay: an address always returns to the same VF.
  if (!fabric.reuse_delay_seconds)
    fabric.reuse_delay_seconds =
        fabric.address_policy == AddressPolicy::kDeterministic ? 0 : kDefaultReuseDelaySeconds;
  if (fabric.pools.empty()) fabric.pools.push_back({.resource = kDefaultResource});
  for (Pool& pool : fabric.pools) {
    if (pool.rails.empty()) pool.rails = all;
    if (!pool.nccl_config) pool.nccl_config = fabric.nccl_config;
  }
}

void Shape<Fabric>::Check(const Fabric& fabric, const Complain& complain) {
  std::set<int> indices;
  for (const auto& [node, index] : fabric.nodes) {
    if (!indices.insert(index).second)
      complain(PointerOf("nodes", node), "another node has index " + std::to_string(index));
  }
  const bool is_whole = fabric.node_groups.empty() && !fabric.of_node;
  for (std::size_t i = 0; i < fabric.rails.size(); ++i) {
    if (is_whole) CheckComplete(fabric.rails[i], PointerOf("rails", i), complain);
    if (fabric.rails[i].index && !fabric.of_node) {
      complain(PointerOf("rails", i, "index"), "all nodes would give the same addresses",
               "remove it: Railhead writes it into the fabric of one node");
    }
    CheckRailAmongOthers(fabric, i, complain);
  }
  for (std::size_t i = 0; i < fabric.pools.size(); ++i) CheckPool(fabric, i, complain);
  for (std::size_t i = 0; i < fabric.node_groups.size(); ++i) CheckNodeGroup(fabric, i, complain);
  if (fabric.of_node && !fabric.node_groups.empty())
    complain("node", "cannot stand beside nodeGroups",
             "Railhead writes it into the fabric of a node: remove it");
}

namespace {

// No field is spelt like it, so the nearest one would not help.
void RefuseDscp(JsonReader& root) {
  const auto refuse = [&](const std::string& at, const nlohmann::json* dscp) {
    if (dscp == nullptr) return;
    const bool fits = dscp->is_number_integer() && *dscp >= 0 && *dscp <= kMaxDscp;
    const int value = fits ? dscp->get<int>() : kExampleDscp;
    root.FailWithin(at, "unknown field",
                    "DSCP " + std::to_string(value) + " of a rail is \"trafficClass\": " +
                        std::to_string(value * 4) + ", or " + std::to_string(value * 4 + 2) + " with ECN");
  };
  const auto dscp_of = [](const nlohmann::json& object) {
    const auto found = object.find("dscp");
    return found == object.end() ? nullptr : &*found;
  };
  refuse("dscp", root.Raw("dscp"));
  const nlohmann::json* rails = root.Raw("rails");
  for (std::size_t i = 0; rails != nullptr && rails->is_array() && i < rails->size(); ++i)
    refuse(PointerOf("rails", i, "dscp"), dscp_of((*rails)[i]));
}

}  // namespace

namespace {

// The reader takes null for absent; in a group it removes what the base has.
void AddRemovals(const nlohmann::json& json, Fabric& fabric) {
  for (std::size_t i = 0; i < fabric.node_groups.size(); ++i) {
    NodeGroup& group = fabric.node_groups[i];
    for (const auto& [key, value] : json.at("nodeGroups").at(i).items()) {
      if (value.is_null() && key != "indices") group.overrides[key] = "null";
    }
  }
}

}  // namespace

Result<Fabric> ParseFabric(const std::string& text, const std::string& what, std::vector<Error>* all) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what));
  JsonReader root = document.Root();
  RefuseDscp(root);
  auto fabric = ReadRecord<Fabric>(root, UnknownFields::kRefuse);
  if (all != nullptr) *all = root.errors();
  RH_TRY(root.status());
  AddRemovals(document.json(), fabric);
  return fabric;
}

}  // namespace railhead
