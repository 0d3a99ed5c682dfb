#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>

#include "cni/state/journal.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
void SetIf(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

Json VfStateJson(const VfState& vf) {
  Json json;
  json["vf"] = vf.vf;
  json["mac"] = vf.mac.ToString();
  json["vlan"] = vf.vlan;
  json["qos"] = vf.qos;
  json["proto"] = vf.vlan_proto;
  SetIf(json, "spoofchk", vf.spoofchk);
  SetIf(json, "trust", vf.trust);
  if (vf.link_state) json["linkState"] = static_cast<int>(*vf.link_state);
  SetIf(json, "minTxRate", vf.min_tx_rate);
  SetIf(json, "maxTxRate", vf.max_tx_rate);
  return json;
}

Json VfChangeJson(const VfChange& change) {
  Json json = Json::object();
  if (change.mac) json["mac"] = change.mac->ToString();
  if (change.vlan)
    json["vlan"] = {{"id", change.vlan->id}, {"qos", change.vlan->qos}, {"proto", change.vlan->proto}};
  SetIf(json, "spoofchk", change.spoofchk);
  SetIf(json, "trust", change.trust);
  if (change.link_state) json["linkState"] = static_cast<int>(*change.link_state);
  if (change.rate) json["rate"] = {{"min", change.rate->min}, {"max", change.rate->max}};
  return json;
}

// "NAME=VALUE NAME=VALUE": as JSON members they would take most of the time that an entry takes.
std::string SettingsText(const DeviceState& settings) {
  std::string text;
  for (const auto& [name, value] : settings.values) {
    if (!text.empty()) text += ' ';
    text.append(name).append("=").append(value);
  }
  return text;
}

Json RouteJson(const Route& route) {
  Json json;
  json["dst"] = route.destination.ToString();
  if (route.gateway) json["gw"] = route.gateway->ToString();
  if (route.source) json["src"] = route.source->ToString();
  json["table"] = route.table;
  json["metric"] = route.metric;
  json["scope"] = static_cast<int>(route.scope);
  if (route.mtu != 0) json["mtu"] = route.mtu;
  if (route.advmss != 0) json["advmss"] = route.advmss;
  return json;
}

Json TuningJson(const LinkTuning& tuning) {
  Json json = Json::object();
  if (!tuning.alt_names.empty()) json["altNames"] = tuning.alt_names;
  SetIf(json, "alias", tuning.alias);
  SetIf(json, "txQueueLen", tuning.tx_queue_len);
  SetIf(json, "promisc", tuning.promiscuous);
  SetIf(json, "allmulti", tuning.all_multicast);
  // A list: the order of writing is part of it.
  for (const auto& [path, value] : tuning.sysctls)
    json["sysctl"].push_back({{"path", path}, {"value", value}});
  return json;
}

Json LinkJson(const AttachedLink& link) {
  Json json;
  json["device"] = link.device;
  json["pf"] = link.pf;
  json["vf"] = link.vf;
  json["rail"] = link.rail;
  json["podName"] = link.pod_name;
  if (!link.slot.empty()) json["slot"] = link.slot;
  if (!link.resource.empty()) json["resource"] = link.resource;
  json["driver"] = link.driver;
  json["userSpace"] = link.user_space;
  if (link.parentless) json["parentless"] = true;
  json["hostName"] = link.host_name;
  json["hostMac"] = link.host_mac.ToString();
  json["hostMtu"] = link.host_mtu;
  json["hostUp"] = link.host_up;
  json["hostAltNames"] = link.host_alt_names;
  json["hostAlias"] = link.host_alias;
  json["hostTxQueueLen"] = link.host_tx_queue_len;
  json["hostPromisc"] = link.host_promiscuous;
  json["hostAllmulti"] = link.host_all_multicast;
  json["hostSettings"] = SettingsText(link.host_settings);
  if (link.host_vf) json["hostVf"] = VfStateJson(*link.host_vf);
  json["vfChange"] = VfChangeJson(link.vf_change);
  if (!link.rebound_for.empty()) json["reboundFor"] = link.rebound_for;
  json["rdmaDevice"] = link.rdma_device;
  json["softRoce"] = link.soft_roce;
  json["rdmaMoved"] = link.rdma_moved;
  json["podMtu"] = link.pod_mtu;
  json["tuning"] = TuningJson(link.tuning);
  json["table"] = link.table;
  json["addresses"] = Json::array();
  for (const auto& address : link.addresses) json["addresses"].push_back(address.ToString());
  json["routes"] = Json::array();
  for (const auto& route : link.routes) json["routes"].push_back(RouteJson(route));
  json["handoff"] = link.handoff;
  SetIf(json, "gidIndex", link.gid_index);
  json["uverbs"] = link.uverbs;
  SetIf(json, "trafficClass", link.traffic_class);
  SetIf(json, "serviceLevel", link.service_level);
  return json;
}

MacAddress Mac(JsonReader& reader, const std::string& key) {
  const std::string text = reader.RequiredString(key);
  const auto mac = MacAddress::Parse(text);
  if (!mac) reader.Fail(key, "'" + text + "' is no MAC address");
  return mac.value_or(MacAddress{});
}

int SmallInt(JsonReader& reader, const std::string& key, int fallback) {
  return static_cast<int>(reader.Int(key, -1, INT_MAX).value_or(fallback));
}

std::optional<std::uint32_t> Rate(JsonReader& reader, const std::string& key) {
  const auto value = reader.Int(key, 0, UINT32_MAX);
  return value ? std::optional<std::uint32_t>(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

std::optional<VfLinkState> State(JsonReader& reader) {
  const auto value = reader.Int("linkState", 0, 2);
  return value ? std::optional<VfLinkState>(static_cast<VfLinkState>(*value)) : std::nullopt;
}

std::uint16_t Proto(JsonReader& reader) {
  return static_cast<std::uint16_t>(reader.Int("proto", 0, UINT16_MAX).value_or(0x8100));
}

VfState ReadVfState(JsonReader reader) {
  VfState vf;
  vf.vf = SmallInt(reader, "vf", 0);
  vf.mac = Mac(reader, "mac");
  vf.vlan = SmallInt(reader, "vlan", 0);
  vf.qos = SmallInt(reader, "qos", 0);
  vf.vlan_proto = Proto(reader);
  vf.spoofchk = reader.Bool("spoofchk");
  vf.trust = reader.Bool("trust");
  vf.link_state = State(reader);
  vf.min_tx_rate = Rate(reader, "minTxRate");
  vf.max_tx_rate = Rate(reader, "maxTxRate");
  return vf;
}

VfChange ReadVfChange(JsonReader reader) {
  VfChange change;
  if (reader.Has("mac")) change.mac = Mac(reader, "mac");
  if (auto vlan = reader.Object("vlan"); vlan) {
    change.vlan = VfChange::Vlan{SmallInt(*vlan, "id", 0), SmallInt(*vlan, "qos", 0), Proto(*vlan)};
  }
  change.spoofchk = reader.Bool("spoofchk");
  change.trust = reader.Bool("trust");
  change.link_state = State(reader);
  if (auto rate = reader.Object("rate"); rate) {
    change.rate = VfChange::Rate{Rate(*rate, "min").value_or(0), Rate(*rate, "max").value_or(0)};
  }
  return change;
}

// A field that a newer version has written is kept: what is not known here cannot be compared.
DeviceState ReadSettings(JsonReader& reader, const std::string& key) {
  DeviceState settings;
  const std::string text = reader.String(key).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view setting = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), setting.size() + 1));
    const std::size_t end = setting.find('=');
    const std::string_view name = setting.substr(0, end);
    const std::string_view value = end == std::string_view::npos ? "" : setting.substr(end + 1);
    const DeviceField* field = FindDeviceField(name);
    const bool wrong =
        name.empty() || end == std::string_view::npos || (field != nullptr && !IsDeviceValue(*field, value));
    if (wrong || !settings.values.emplace(name, value).second)
      reader.Fail(key, "'" + std::string(setting) + "' is no setting and its value, or is there twice");
  }
  if (!text.empty() && text.back() == ' ') reader.Fail(key, "ends with a space");
  return settings;
}

IpPrefix Prefix(JsonReader& reader, const std::string& key, const std::string& text) {
  const auto prefix = IpPrefix::Parse(text);
  if (!prefix) reader.Fail(key, "'" + text + "' is no address with prefix length");
  return prefix.value_or(IpPrefix{});
}

std::optional<IpAddress> Address(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text) return std::nullopt;
  const auto address = IpAddress::Parse(*text);
  if (!address) reader.Fail(key, "'" + *text + "' is no IP address");
  return address;
}

Route ReadRoute(JsonReader& reader) {
  Route route;
  route.destination = Prefix(reader, "dst", reader.RequiredString("dst"));
  route.gateway = Address(reader, "gw");
  route.source = Address(reader, "src");
  route.table = static_cast<std::uint32_t>(reader.Int("table", 0, UINT32_MAX).value_or(kTableMain));
  route.metric = static_cast<std::uint32_t>(reader.Int("metric", 0, UINT32_MAX).value_or(0));
  route.scope = static_cast<RouteScope>(reader.Int("scope", 0, 255).value_or(0));
  route.mtu = static_cast<std::uint32_t>(reader.Int("mtu", 0, UINT32_MAX).value_or(0));
  route.advmss = static_cast<std::uint32_t>(reader.Int("advmss", 0, UINT32_MAX).value_or(0));
  return route;
}

LinkTuning ReadTuning(JsonReader reader) {
  LinkTuning tuning;
  tuning.alt_names = reader.Strings("altNames").value_or(std::vector<std::string>{});
  tuning.alias = reader.String("alias");
  if (reader.Has("txQueueLen")) tuning.tx_queue_len = SmallInt(reader, "txQueueLen", 0);
  tuning.promiscuous = reader.Bool("promisc");
  tuning.all_multicast = reader.Bool("allmulti");
  for (JsonReader& sysctl : reader.Objects("sysctl")) {
    tuning.sysctls.emplace_back(sysctl.RequiredString("path"), sysctl.RequiredString("value"));
  }
  return tuning;
}

AttachedLink ReadLink(JsonReader& reader) {
  AttachedLink link;
  link.device = reader.RequiredString("device");
  link.pf = reader.String("pf").value_or("");
  link.vf = SmallInt(reader, "vf", -1);
  link.rail = reader.String("rail").value_or("");
  link.pod_name = reader.RequiredString("podName");
  link.slot = reader.String("slot").value_or("");
  link.resource = reader.String("resource").value_or("");
  link.driver = reader.String("driver").value_or("");
  link.user_space = reader.Bool("userSpace").value_or(false);
  link.parentless = reader.Bool("parentless").value_or(false);
  link.host_name = reader.String("hostName").value_or("");
  link.host_mac = Mac(reader, "hostMac");
  link.host_mtu = SmallInt(reader, "hostMtu", 0);
  link.host_up = reader.Bool("hostUp").value_or(false);
  link.host_alt_names = reader.Strings("hostAltNames").value_or(std::vector<std::string>{});
  link.host_alias = reader.String("hostAlias").value_or("");
  link.host_tx_queue_len = SmallInt(reader, "hostTxQueueLen", 0);
  link.host_promiscuous = reader.Bool("hostPromisc").value_or(false);
  link.host_all_multicast = reader.Bool("hostAllmulti").value_or(false);
  link.host_settings = ReadSettings(reader, "hostSettings");
  if (auto vf = reader.Object("hostVf"); vf) link.host_vf = ReadVfState(*vf);
  if (auto change = reader.Object("vfChange"); change) link.vf_change = ReadVfChange(*change);
  link.rebound_for = reader.String("reboundFor").value_or("");
  link.rdma_device = reader.String("rdmaDevice").value_or("");
  link.soft_roce = reader.Bool("softRoce").value_or(false);
  link.rdma_moved = reader.Bool("rdmaMoved").value_or(false);
  link.pod_mtu = SmallInt(reader, "podMtu", 0);
  if (auto tuning = reader.Object("tuning"); tuning) link.tuning = ReadTuning(*tuning);
  link.table = static_cast<std::uint32_t>(reader.Int("table", 0, UINT32_MAX).value_or(0));
  for (const auto& text : reader.Strings("addresses").value_or(std::vector<std::string>{})) {
    link.addresses.push_back(Prefix(reader, "addresses", text));
  }
  for (JsonReader& route : reader.Objects("routes")) link.routes.push_back(ReadRoute(route));
  link.handoff = reader.Bool("handoff").value_or(false);
  if (const auto gid = reader.Int("gidIndex", 0, INT_MAX); gid) link.gid_index = static_cast<int>(*gid);
  link.uverbs = reader.String("uverbs").value_or("");
  if (const auto tc = reader.Int("trafficClass", 0, 255); tc) link.traffic_class = static_cast<int>(*tc);
  if (const auto sl = reader.Int("serviceLevel", 0, 15); sl) link.service_level = static_cast<int>(*sl);
  return link;
}

// All but the devices; what is wrong sticks in the reader.
JournalEntry ReadHead(JsonReader& reader) {
  JournalEntry entry;
  if (!reader.Int("version", 1, 1)) reader.Fail("version", "is required");
  entry.key = {reader.RequiredString("network"), reader.RequiredString("containerId"),
               reader.RequiredString("ifname")};
  entry.boot_id = reader.RequiredString("bootId");
  entry.phase = reader.RequiredString("phase") == "done" ? Phase::kDone : Phase::kPlanned;
  entry.netns = reader.String("netns").value_or("");
  entry.netns_inode = static_cast<std::uint64_t>(reader.Int("netnsInode", 0, INT64_MAX).value_or(0));
  entry.since = reader.Int("since", 0, INT64_MAX).value_or(0);
  entry.ipam_type = reader.String("ipam").value_or("");
  for (JsonReader& call : reader.Objects("ipamCalls")) {
    const auto state = call.Bool("refused").value_or(false) ? IpamState::kRefused : IpamState::kAsked;
    entry.ipam_calls.push_back({call.RequiredString("ifname"), call.RequiredString("config"), state});
  }
  entry.cni_path = reader.Strings("cniPath").value_or(std::vector<std::string>{});
  if (auto args = reader.Object("cniArgs"); args) {
    for (const auto& name : args->Keys()) entry.cni_args[name] = args->String(name).value_or("");
  }
  entry.handoff_required = reader.Bool("handoffRequired").value_or(false);
  return entry;
}

Result<AttachedLink> ParseLink(const nlohmann::json& json, const std::string& what) {
  const auto document =
      RH_TRY(JsonDocument::Parse(json.dump(-1, ' ', false, Json::error_handler_t::replace), what));
  JsonReader reader = document.Root();
  AttachedLink link = ReadLink(reader);
  RH_TRY(reader.status());
  return link;
}

// Devices that are named by no readable part. (A slot's link leads to the entry, too.)
void AddDevicesOf(const UnreadableEntry& file, RecoveredEntry* recovered) {
  for (const std::string& device : file.devices) {
    const auto& links = recovered->entry.links;
    const bool known = std::ranges::any_of(
        links, [&](const AttachedLink& link) { return link.device == device || link.slot == device; });
    if (!known && recovered->unreadable.insert(device).second)
      recovered->lost.push_back("name, MAC and settings of " + device + " before the pod");
  }
}

}  // namespace

std::string FormatJournalEntry(const JournalEntry& entry) {
  Json json;
  json["version"] = 1;
  json["network"] = entry.key.network;
  json["containerId"] = entry.key.container_id;
  json["ifname"] = entry.key.ifname;
  json["bootId"] = entry.boot_id;
  json["phase"] = entry.phase == Phase::kDone ? "done" : "planned";
  json["netns"] = entry.netns;
  json["netnsInode"] = entry.netns_inode;
  json["since"] = entry.since;
  json["ipam"] = entry.ipam_type;
  json["ipamCalls"] = Json::array();
  for (const auto& call : entry.ipam_calls) {
    Json& added = json["ipamCalls"].emplace_back(Json{{"ifname", call.ifname}, {"config", call.config}});
    if (call.state == IpamState::kRefused) added["refused"] = true;
  }
  json["cniPath"] = entry.cni_path;
  json["cniArgs"] = entry.cni_args;
  json["handoffRequired"] = entry.handoff_required;
  json["links"] = Json::array();
  for (const auto& link : entry.links) json["links"].push_back(LinkJson(link));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<JournalEntry> ParseJournalEntry(const std::string& text, const std::string& what) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what));
  JsonReader reader = document.Root();
  JournalEntry entry = ReadHead(reader);
  for (JsonReader& link : reader.Objects("links")) entry.links.push_back(ReadLink(link));
  RH_TRY(reader.status());
  return entry;
}

RecoveredEntry RecoverJournalEntry(const std::string& text, const UnreadableEntry& file) {
  RecoveredEntry recovered;
  const auto document = JsonDocument::Parse(text, file.path);
  if (!document || !document->json().is_object()) {
    recovered.entry.key = file.key;
    recovered.lost.push_back("the whole entry: " + file.error.message);
    AddDevicesOf(file, &recovered);
    return recovered;
  }
  JsonReader reader = document->Root();
  recovered.entry = ReadHead(reader);
  recovered.entry.key = file.key;
  for (const Error& error : reader.errors()) recovered.lost.push_back(error.message);
  const auto& json = document->json();
  const auto links =
      json.contains("links") && json["links"].is_array() ? json["links"] : nlohmann::json::array();
  for (std::size_t i = 0; i < links.size(); ++i) {
    auto link = ParseLink(links[i], "/links/" + std::to_string(i));
    if (link) {
      recovered.entry.links.push_back(*std::move(link));
    } else {
      recovered.lost.push_back(link.error().message);
    }
  }
  AddDevicesOf(file, &recovered);
  return recovered;
}

}  // namespace railhead
