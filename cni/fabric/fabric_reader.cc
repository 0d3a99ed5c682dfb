// The text of fabric.json -> Fabric.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

constexpr int kMinMtu = 68;
constexpr int kMaxMtu = 65535;
constexpr int kMaxRestSeconds = 30 * 24 * 3600;
constexpr int kMaxProbeMs = 10'000;           // RFC 5227's own times come to 9 s
constexpr std::size_t kMaxLeafPattern = 255;  // of a switch's name
constexpr std::uint32_t kMaxTable = 4294967295U;

void ReadPf(JsonReader& reader, Rail& rail) {
  const auto* pf = reader.Raw("pf");
  if (pf == nullptr) return reader.Fail("pf", "is required", "a PF's name, its PCI address, or its position");
  if (pf->is_string()) {
    rail.pfs = {pf->get<std::string>()};
  } else if (pf->is_array()) {
    rail.pfs = reader.Strings("pf").value_or(std::vector<std::string>{});
  } else {
    const auto position = reader.Int("pf", 0, 255);
    if (position) rail.position = static_cast<int>(*position);
    return;
  }
  const bool bad = rail.pfs.empty() || std::ranges::any_of(rail.pfs, [](auto& s) { return s.empty(); });
  if (bad) reader.Fail("pf", "must not be empty");
}

// A pattern or several. What fnmatch(3) makes of them is known only to who has a name to compare.
void ReadLeaves(JsonReader& reader, Rail& rail) {
  const auto* leaf = reader.Raw("leaf");
  if (leaf == nullptr) return;
  if (leaf->is_string()) {
    rail.leaves = {leaf->get<std::string>()};
  } else if (leaf->is_array()) {
    rail.leaves = reader.Strings("leaf").value_or(std::vector<std::string>{});
  } else {
    return reader.Fail("leaf", "is neither a name nor a list of names", R"(for example "leaf-*-1")");
  }
  const bool bad = rail.leaves.empty() || std::ranges::any_of(rail.leaves, [](const auto& pattern) {
                     return pattern.empty() || pattern.size() > kMaxLeafPattern;
                   });
  if (bad)
    reader.Fail("leaf", "must not be empty, nor longer than 255 characters", R"(for example "leaf-*-1")");
}

Rail ReadRail(JsonReader& reader, const std::map<std::string, int>& nodes, std::size_t position) {
  Rail rail;
  rail.name = reader.RequiredString("name");
  // Interfaces are called after it, and it stands in labels of metrics and in logs.
  if (std::ranges::any_of(rail.name, [](unsigned char c) { return c <= ' ' || c == 0x7f || c == '/'; })) {
    reader.Fail("name", "holds a blank, a '/' or a control character", "for example rail0");
  }
  ReadPf(reader, rail);
  if (const auto vlan = reader.Int("vlan", 0, 4094); vlan) rail.vlan = static_cast<int>(*vlan);
  rail.vlan_qos = static_cast<int>(reader.Int("vlanQoS", 0, 7).value_or(0));
  if (rail.vlan_qos != 0 && rail.vlan.value_or(0) == 0) reader.Fail("vlanQoS", "needs a vlan other than 0");
  if (const auto mtu = reader.Int("mtu", kMinMtu, kMaxMtu); mtu) rail.mtu = static_cast<int>(*mtu);
  ReadAddressing(reader, nodes, rail);
  if (const auto tc = reader.Int("trafficClass", 0, 255); tc) rail.traffic_class = static_cast<int>(*tc);
  if (const auto sl = reader.Int("serviceLevel", 0, 15); sl) rail.service_level = static_cast<int>(*sl);
  rail.soft_roce = reader.Bool("softRoce").value_or(false);
  ReadLeaves(reader, rail);
  // 253..255 are the kernel's default, main and local tables.
  rail.table = static_cast<std::uint32_t>(
      reader.Int("table", 1, kMaxTable).value_or(kFirstRailTable + static_cast<std::int64_t>(position)));
  if (rail.table >= 253 && rail.table <= 255) reader.Fail("table", "253, 254 and 255 are the kernel's");
  reader.Close();
  return rail;
}

HandoffPolicy ReadPolicy(JsonReader& reader, const std::string& key, HandoffPolicy fallback) {
  const auto text = reader.String(key);
  if (!text) return fallback;
  if (*text == "required") return HandoffPolicy::kRequired;
  if (*text == "off") return HandoffPolicy::kOff;
  reader.Fail(key, "'" + *text + "' is not known", "required or off");
  return fallback;
}

void ReadHandoff(JsonReader& reader, Fabric& fabric) {
  auto handoff = reader.Object("handoff");
  if (!handoff) return;
  fabric.handoff = ReadPolicy(*handoff, "mode", HandoffPolicy::kRequired);
  fabric.handoff_options = ReadHandoffOptions(*handoff);
  handoff->Close();
}

bool IsResourceName(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size() || text.size() > 200) return false;
  // Sockets and files are called after it, too: neither part is "..".
  for (const std::size_t end : {std::size_t{0}, slash - 1, slash + 1, text.size() - 1}) {
    if (std::isalnum(static_cast<unsigned char>(text[end])) == 0) return false;
  }
  return std::ranges::all_of(text,
                             [](unsigned char c) {
                               return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
                             }) &&
         text.find('/', slash + 1) == std::string::npos && text.find("kubernetes.io/") == std::string::npos;
}

Pool ReadPool(JsonReader& reader, const Fabric& fabric) {
  Pool pool;
  pool.resource = reader.RequiredString("resource");
  if (!pool.resource.empty() && !IsResourceName(pool.resource)) {
    reader.Fail("resource", "'" + pool.resource + "' is no extended resource name",
                "for example railhead.io/roce");
  }
  const auto rails = reader.Strings("rails");
  for (const auto& name : rails.value_or(std::vector<std::string>{})) {
    if (fabric.FindRail(name) == nullptr) reader.Fail("rails", "there is no rail '" + name + "'");
    pool.rails.push_back(name);
  }
  if (!rails) {
    for (const auto& rail : fabric.rails) pool.rails.push_back(rail.name);
  }
  if (pool.rails.empty()) reader.Fail("rails", "must not be empty");
  if (const auto device = reader.String("device"); device) {
    if (*device != "vf" && *device != "pf")
      reader.Fail("device", "'" + *device + "' is not known", "vf or pf");
    pool.device = *device == "pf" ? PoolDevice::kPf : PoolDevice::kVf;
  }
  pool.handoff = ReadPolicy(reader, "handoff", fabric.handoff);
  if (const auto delivery = reader.String("delivery"); delivery) {
    if (*delivery != "cdi" && *delivery != "mount")
      reader.Fail("delivery", "'" + *delivery + "' is not known", "cdi or mount");
    pool.delivery = *delivery == "mount" ? Delivery::kMount : Delivery::kCdi;
  }
  if (const auto binding = reader.String("binding"); binding) {
    if (*binding != "early" && *binding != "late")
      reader.Fail("binding", "'" + *binding + "' is not known", "early or late");
    pool.late = *binding == "late";
    if (pool.late && pool.delivery == Delivery::kMount)
      reader.Fail("delivery", "'mount' cannot serve slots: what they are is known only at ADD", "use cdi");
    if (pool.late && pool.handoff != HandoffPolicy::kRequired)
      reader.Fail("handoff", "'off' cannot serve slots: nothing would stop a container without its device",
                  "use required");
  }
  for (const auto& name : pool.rails) {
    const Rail* rail = fabric.FindRail(name);
    if (pool.delivery == Delivery::kMount && rail != nullptr && rail->soft_roce) {
      reader.Fail("delivery", "'mount' cannot serve the soft RoCE rail '" + name + "'",
                  "its uverbs node exists only after ADD: use cdi");
    }
    if (pool.device == PoolDevice::kPf && rail != nullptr && rail->vlan.value_or(0) != 0) {
      reader.Fail("device",
                  "'pf' cannot serve rail '" + name + "', which has VLAN " + std::to_string(*rail->vlan),
                  "only a VF gets a VLAN: use vf, or have the switch port tag and remove `vlan` of the rail");
    }
  }
  reader.Close();
  return pool;
}

void ReadNodes(JsonReader& root, Fabric& fabric) {
  auto nodes = root.Object("nodes");
  if (!nodes) return;
  std::set<std::int64_t> taken;
  for (const auto& node : nodes->Keys()) {
    const auto index = nodes->Int(node, 0, INT32_MAX);
    if (!index) continue;
    if (!taken.insert(*index).second) nodes->Fail(node, "another node has index " + std::to_string(*index));
    fabric.nodes[node] = static_cast<int>(*index);
  }
}

// What is of one kind of store only, whoever talks to that store reads.
void ReadAddressStore(JsonReader& addresses, Fabric& fabric) {
  auto store = addresses.Object("store");
  if (!store) return;
  const std::string type = store->String("type").value_or("node");
  if (type != "node" && type != "etcd" && type != "kubernetes")
    store->Fail("type", "'" + type + "' is not known", "node, etcd or kubernetes");
  fabric.leases_blocks = type != "node";
  fabric.address_store = addresses.Raw("store")->dump();
}

AddressPolicy ReadAddressPolicy(JsonReader& addresses) {
  const std::string policy = addresses.String("policy").value_or("increment");
  if (policy == "deterministic") return AddressPolicy::kDeterministic;
  if (policy != "increment") {
    addresses.Fail("policy", "'" + policy + "' is not known", "increment or deterministic");
  }
  return AddressPolicy::kIncrement;
}

void ReadAddresses(JsonReader& root, Fabric& fabric) {
  auto addresses = root.Object("addresses");
  if (!addresses) return;
  const auto number = [&](const char* key, int max, int fallback) {
    return static_cast<int>(addresses->Int(key, 0, max).value_or(fallback));
  };
  fabric.address_policy = ReadAddressPolicy(*addresses);
  // An address that always comes back to the same VF has no former owner to be forgotten.
  const bool deterministic = fabric.address_policy == AddressPolicy::kDeterministic;
  fabric.rest_seconds = number("restSeconds", kMaxRestSeconds, deterministic ? 0 : kDefaultRestSeconds);
  fabric.min_rest_seconds = number("minRestSeconds", kMaxRestSeconds, kDefaultMinRestSeconds);
  fabric.conflict_probe_ms = number("conflictProbeMs", kMaxProbeMs, kDefaultConflictProbeMs);
  ReadAddressStore(*addresses, fabric);
  for (const Rail& rail : fabric.rails) {
    if (!deterministic || !fabric.Leases(rail)) continue;
    addresses->Fail("policy", "rail '" + rail.name + "' has leased blocks, which are nobody's for good",
                    "give it nodeRanges or nodeBlock");
  }
  addresses->Close();
}

// A range given by index and one given by name of the same node are two answers
// to one question.
void CheckNodeRanges(JsonReader& rail_reader, const Rail& rail, const Fabric& fabric) {
  for (const auto& [name, index] : fabric.nodes) {
    if (rail.node_ranges.contains(name) && rail.node_ranges.contains(std::to_string(index))) {
      rail_reader.Fail("nodeRanges", "node '" + name + "' has a range by name and one by its index");
    }
  }
}

void ReadRails(JsonReader& root, Fabric& fabric) {
  for (JsonReader& reader : root.Objects("rails")) {
    Rail rail = ReadRail(reader, fabric.nodes, fabric.rails.size());
    if (fabric.FindRail(rail.name) != nullptr)
      reader.Fail("name", "another rail is called '" + rail.name + "'");
    for (const auto& other : fabric.rails) {
      if (other.table == rail.table)
        reader.Fail("table", "rail '" + other.name + "' has table " + std::to_string(rail.table));
    }
    CheckNodeRanges(reader, rail, fabric);
    fabric.rails.push_back(std::move(rail));
  }
  if (fabric.rails.empty()) root.Fail("rails", "must name at least one rail");
}

}  // namespace

Result<Fabric> ParseFabric(const std::string& text, const std::string& what, std::vector<Error>* all) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what));
  JsonReader root = document.Root();
  Fabric fabric;
  const auto version = root.Int("version", 1, 1);
  if (!version) root.Fail("version", "is required", "this Railhead reads version 1");
  ReadNodes(root, fabric);
  ReadRails(root, fabric);
  ReadAddresses(root, fabric);
  if (const auto mode = root.String("rdmaMode"); mode) {
    if (*mode != "shared" && *mode != "exclusive") {
      root.Fail("rdmaMode", "'" + *mode + "' is not known", "shared or exclusive");
    }
    fabric.rdma_exclusive = *mode == "exclusive";
  }
  ReadHandoff(root, fabric);
  for (JsonReader& reader : root.Objects("pools")) {
    Pool pool = ReadPool(reader, fabric);
    for (const auto& other : fabric.pools) {
      if (other.resource == pool.resource)
        reader.Fail("resource", "another pool is called '" + pool.resource + "'");
    }
    fabric.pools.push_back(std::move(pool));
  }
  if (fabric.pools.empty()) {
    Pool pool;
    pool.resource = kDefaultResource;
    pool.handoff = fabric.handoff;
    for (const auto& rail : fabric.rails) pool.rails.push_back(rail.name);
    fabric.pools.push_back(std::move(pool));
  }
  fabric.policy = ReadPolicy(root);
  if (const auto* health = root.Raw("health"); health != nullptr) fabric.health = health->dump();
  if (const auto* provision = root.Raw("provision"); provision != nullptr)
    fabric.provision = provision->dump();
  if (const auto* connectivity = root.Raw("connectivity"); connectivity != nullptr)
    fabric.connectivity = connectivity->dump();
  if (const auto* isolation = root.Raw("isolation"); isolation != nullptr)
    fabric.isolation = isolation->dump();
  root.Close();
  if (all != nullptr) *all = root.errors();
  RH_TRY(root.status());
  return fabric;
}

namespace {

std::set<std::string> ReadSet(JsonReader& reader, const char* key) {
  const auto texts = reader.Strings(key).value_or(std::vector<std::string>{});
  return {texts.begin(), texts.end()};
}

std::set<std::string> ReadKeys(JsonReader& reader) {
  std::set<std::string> keys;
  const std::vector<std::string> known(kRestrictedKeys.begin(), kRestrictedKeys.end());
  for (const std::string& key : reader.Strings("allow").value_or(std::vector<std::string>{})) {
    if (key == "*") {
      keys.insert(known.begin(), known.end());
    } else if (Contains(known, key)) {
      keys.insert(key);
    } else {
      const auto near = Nearest(key, known);
      reader.Fail("allow", "'" + key + "' is no key that needs a permission",
                  near ? "did you mean " + *near + "?" : "one of " + Join(known, ", ") + ", or *");
    }
  }
  return keys;
}

std::set<std::string> ReadPaths(JsonReader& reader, const char* key) {
  auto paths = ReadSet(reader, key);
  for (const std::string& path : paths) {
    if (!path.starts_with("/")) reader.Fail(key, "'" + path + "' is no absolute path");
  }
  return paths;
}

NetworkRule ReadRule(JsonReader& reader) {
  NetworkRule rule;
  rule.networks = reader.Strings("networks").value_or(std::vector<std::string>{});
  rule.namespaces = reader.Strings("namespaces").value_or(std::vector<std::string>{});
  rule.keys = ReadKeys(reader);
  if (const auto devices = reader.String("devices"); devices) {
    if (*devices != "allocated" && *devices != "any")
      reader.Fail("devices", "'" + *devices + "' is not known", "allocated or any");
    rule.any_device = *devices == "any";
  }
  rule.ipam_types = ReadSet(reader, "ipam");
  rule.sysctls = ReadSet(reader, "sysctls");
  rule.fabric_paths = ReadPaths(reader, "fabrics");
  rule.resolv_confs = ReadPaths(reader, "resolvConf");
  reader.Close();
  return rule;
}

ResetPolicy ReadReset(JsonReader& reader) {
  const std::string text = reader.String("reset").value_or("tenant");
  if (text == "always") return ResetPolicy::kAlways;
  if (text == "never") return ResetPolicy::kNever;
  if (text != "tenant") reader.Fail("reset", "'" + text + "' is not known", "tenant, always or never");
  return ResetPolicy::kTenant;
}

}  // namespace

NetworkPolicy ReadPolicy(JsonReader& root) {
  NetworkPolicy policy;
  auto reader = root.Object("policy");
  if (!reader) return policy;
  for (JsonReader& rule : reader->Objects("networks")) policy.rules.push_back(ReadRule(rule));
  policy.reset = ReadReset(*reader);
  reader->Close();
  return policy;
}

}  // namespace railhead
