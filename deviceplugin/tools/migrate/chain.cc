#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "deviceplugin/tools/migrate/network.h"

namespace railhead::migrate {
namespace {

using Json = nlohmann::json;

// Of sriov-cni, as railhead has them.
constexpr const char* kSameInSriov[] = {"vlan",       "vlanQoS",     "vlanProto",   "mac",
                                        "link_state", "min_tx_rate", "max_tx_rate", "deviceID"};
// Of the runtime, whatever the plugin.
constexpr const char* kOfRuntime[] = {"args", "runtimeConfig", "dns"};
constexpr const char* kOfNetwork[] = {
    "cniVersion", "cniVersions", "name", "disableCheck", "disableGC", "loadOnlyInlinedPlugins", "ipam"};
// Plugins that only look at the interface and at what was answered before them.
constexpr const char* kGoOn[] = {"bandwidth", "portmap", "firewall", "vrf"};

template <typename List>
bool Has(const List& list, std::string_view key) {
  return std::any_of(std::begin(list), std::end(list), [&](std::string_view one) { return one == key; });
}

void Put(const Section& plugin, const std::string& key, const Json& value, Network* network) {
  network->entry[key] = value;
  network->origins[key] = plugin.Place(key);
}

void Keep(const Section& plugin, const std::string& key, Network* network) {
  const Json& value = *plugin.Find(key);
  if (value.is_string() && value.get_ref<const std::string&>().empty())
    return plugin.Say(key, Fate::kDropped, "because it is empty");
  Put(plugin, key, value, network);
  plugin.Say(key, Fate::kKept, "as it is");
}

// Capabilities of all plugins that became one.
void TakeCapabilities(const Section& plugin, Network* network) {
  const Json* capabilities = plugin.Find("capabilities");
  if (capabilities == nullptr) return;
  if (!capabilities->is_object())
    return plugin.Say("capabilities", Fate::kDecide, "is no object; it is left out");
  for (const auto& [name, wanted] : capabilities->items()) network->entry["capabilities"][name] = wanted;
  plugin.Say("capabilities", Fate::kKept, "as they are");
}

// sriov-cni takes every word but "on" for off.
void TakeSwitch(const Section& plugin, const std::string& key, Network* network) {
  const std::string word = plugin.Text(key);
  if (word.empty() || word == "on" || word == "off") return Keep(plugin, key, network);
  Put(plugin, key, "off", network);
  plugin.Say(key, Fate::kChanged, "to off, which is what sriov-cni makes of '" + word + "'");
}

// What belongs to the network or to the runtime: true when `key` is of these.
bool TakeCommon(const Section& plugin, const std::string& key, Network* network) {
  if (Has(kOfNetwork, key)) {
    // In a list the network's own counts: libcni writes it over the plugin's.
    if (network->listed && key != "ipam") plugin.Say(key, Fate::kDropped, "because the list's own counts");
    return true;
  }
  if (key == "capabilities") {
    TakeCapabilities(plugin, network);
  } else if (Has(kOfRuntime, key)) {
    Keep(plugin, key, network);
  } else {
    return key == "type";
  }
  return true;
}

void TakeSriov(const Section& plugin, Network* network) {
  plugin.Say("type", Fate::kChanged, "to railhead");
  for (const auto& [key, value] : plugin.object().items()) {
    if (value.is_null() || TakeCommon(plugin, key, network)) continue;
    if (Has(kSameInSriov, key)) {
      Keep(plugin, key, network);
    } else if (key == "spoofchk" || key == "trust") {
      TakeSwitch(plugin, key, network);
    } else if (key == "logLevel" || key == "logFile") {
      plugin.Say(key, Fate::kDropped, "because railhead answers with errors and writes no log");
    } else {
      std::vector<std::string> known(std::begin(kSameInSriov), std::end(kSameInSriov));
      known.insert(known.end(), {"spoofchk", "trust", "ipam", "logLevel", "logFile"});
      plugin.SayUnknown(key, known);
    }
  }
}

void TakeHostDevice(const Section& plugin, Network* network) {
  plugin.Say("type", Fate::kDecide,
             "to railhead; pools of fabric.json give VFs: where whole PFs were given, write \"device\": "
             "\"pf\" there");
  for (const auto& [key, value] : plugin.object().items()) {
    if (value.is_null() || TakeCommon(plugin, key, network)) continue;
    if (key == "deviceID" || key == "pciBusID") {
      Keep(plugin, key, network);
    } else if (key == "device" || key == "hwaddr" || key == "kernelpath") {
      plugin.Say(key, Fate::kDecide,
                 "railhead finds a device by its PCI address, which kubelet gives: name a resource for the "
                 "network, or write deviceID");
    } else {
      plugin.SayUnknown(key, {"deviceID", "pciBusID"});
    }
  }
}

void TakeSysctls(const Section& tuning, OrderedJson* rest, Network* network) {
  const Section sysctls = tuning.Inner("sysctl");
  if (!sysctls.object().is_object())
    return tuning.Say("sysctl", Fate::kDecide, "is no object; it is left out");
  for (const auto& [name, value] : sysctls.object().items()) {
    if (name.starts_with("net.") || name.starts_with("net/")) {
      network->entry["sysctl"][name] = value;
      sysctls.Say(name, Fate::kKept, "as it is");
    } else {
      (*rest)["sysctl"][name] = value;
      sysctls.Say(name, Fate::kKept, "by tuning, which stays in the chain for it");
    }
  }
}

bool IsSetByTuning(const std::string& key, const Json& value) {
  if (key == "promisc") return value == true;
  if (key == "mtu" || key == "txQLen") return value.is_number() && value != 0;
  return !value.is_string() || !value.get_ref<const std::string&>().empty();
}

void TakeTuning(const Section& tuning, Network* network) {
  OrderedJson rest;
  tuning.Say("type", Fate::kDropped, "because railhead does what it was chained for");
  for (const auto& [key, value] : tuning.object().items()) {
    if (value.is_null() || key == "ipam" || TakeCommon(tuning, key, network)) continue;
    if (key == "sysctl") {
      TakeSysctls(tuning, &rest, network);
    } else if (key == "dataDir") {
      tuning.Say(key, Fate::kDropped, "because the journal has what DEL restores");
    } else if (!Has(std::initializer_list<const char*>{"mac", "mtu", "promisc", "txQLen", "allmulti"}, key)) {
      tuning.SayUnknown(key, {"mac", "mtu", "promisc", "txQLen", "allmulti", "sysctl", "dataDir"});
    } else if (!IsSetByTuning(key, value)) {
      tuning.Say(key, Fate::kDropped, "because it changes nothing");
    } else {
      const bool other = network->entry.contains(key) && network->entry[key] != OrderedJson(value);
      if (other) network->keys.Set(network->origins[key], Fate::kDropped, "because tuning sets another one");
      Put(tuning, key, value, network);
      tuning.Say(key, Fate::kKept, "as it is, of railhead");
    }
  }
  if (rest.empty()) return;
  rest["type"] = "tuning";
  tuning.Say("type", Fate::kKept, "in the chain, for what is no sysctl of the network");
  network->others.push_back(std::move(rest));
}

void TakeRdma(const Section& rdma, Network* network) {
  network->exclusive_rdma = true;
  rdma.Say(
      "type", Fate::kDropped,
      "because railhead moves the RDMA device itself; rdmaMode of fabric.json is exclusive, without which "
      "rdma-cni does nothing");
  const Section args = rdma.Inner("args").Inner("cni");
  args.Say("debug", Fate::kDropped, "because railhead writes no log");
  args.Say("rdmaDeviceName", Fate::kDecide, "railhead leaves RDMA devices their names; it is left out");
  rdma.Say(
      "rdmaQoS", Fate::kDecide,
      "railhead sets nothing of the kind on the device; trafficClass of the rail tells NCCL; it is left out");
  for (const auto& [key, value] : rdma.object().items()) {
    if (Has(kOfNetwork, key) && key != "ipam") rdma.Say(key, Fate::kDropped, "because the list's own counts");
  }
  rdma.Say("capabilities", Fate::kDropped, "because railhead needs none for it");
  rdma.SayRest(Fate::kDecide, "rdma does not know it and ignores it; it is left out");
}

void TakeSbr(const Section& sbr, Network* network) {
  sbr.Say("type", Fate::kDropped,
          "because railhead makes a table and rules for each rail, and leaves the connected route in main");
  sbr.Say("addSourceHints", Fate::kDropped, "because the routes of a rail name their source address");
  if (sbr.Find("table") != nullptr) Keep(sbr, "table", network);
  for (const auto& [key, value] : sbr.object().items()) {
    if (Has(kOfNetwork, key) && key != "ipam") sbr.Say(key, Fate::kDropped, "because the list's own counts");
  }
  sbr.SayRest(Fate::kDecide, "sbr does not know it and ignores it; it is left out");
}

}  // namespace

void TakeMainPlugin(const Section& plugin, Network* network) {
  if (plugin.Text("type") == "sriov") return TakeSriov(plugin, network);
  if (plugin.Text("type") == "host-device") return TakeHostDevice(plugin, network);
  network->usable = false;
  plugin.SayRest(Fate::kDecide,
                 plugin.Text("type") + " has nothing to take its place here: rails are Ethernet");
}

void TakeChained(const Section& plugin, Network* network) {
  const std::string type = plugin.Text("type");
  if (type == "tuning") return TakeTuning(plugin, network);
  if (type == "rdma") return TakeRdma(plugin, network);
  if (type == "sbr") return TakeSbr(plugin, network);
  network->others.emplace_back(plugin.object());
  plugin.SayRest(Fate::kKept, "in the chain as it is");
  if (!Has(kGoOn, type))
    plugin.Say("type", Fate::kDecide,
               "stays in the chain behind railhead; whether " + type +
                   " goes on with railhead's interface is not known here");
}

}  // namespace railhead::migrate
