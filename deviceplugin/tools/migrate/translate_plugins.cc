#include "deviceplugin/tools/migrate/translate_plugins.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deviceplugin/tools/migrate/key_outcomes.h"

namespace railhead::migrate {
namespace {

using Json = nlohmann::json;

// Keys of sriov-cni that railhead has under the same name.
constexpr const char* kSameInSriov[] = {"vlan",       "vlanQoS",     "vlanProto",   "mac",
                                        "link_state", "min_tx_rate", "max_tx_rate", "deviceID"};
// Keys that the runtime reads, whatever the plugin.
constexpr const char* kOfRuntime[] = {"args", "runtimeConfig", "dns"};
constexpr const char* kOfNetwork[] = {
    "cniVersion", "cniVersions", "name", "disableCheck", "disableGC", "loadOnlyInlinedPlugins", "ipam"};
// Plugins that only read the interface and the earlier plugins' result.
constexpr const char* kGoOn[] = {"bandwidth", "portmap", "firewall", "vrf"};

template <typename List>
bool Has(const List& list, std::string_view key) {
  return std::any_of(std::begin(list), std::end(list), [&](std::string_view one) { return one == key; });
}

void Put(const DocumentSection& plugin, const std::string& key, const Json& value, Network* network) {
  network->entry[key] = value;
  network->origins[key] = plugin.Place(key);
}

void Keep(const DocumentSection& plugin, const std::string& key, Network* network) {
  const Json& value = *plugin.Find(key);
  if (value.is_string() && value.get_ref<const std::string&>().empty())
    return plugin.SetOutcome(key, KeyOutcome::kDropped, "because it is empty");
  Put(plugin, key, value, network);
  plugin.SetOutcome(key, KeyOutcome::kKept, "as it is");
}

// The capabilities of all plugins that became one.
void TranslateCapabilities(const DocumentSection& plugin, Network* network) {
  const Json* capabilities = plugin.Find("capabilities");
  if (capabilities == nullptr) return;
  if (!capabilities->is_object())
    return plugin.SetOutcome("capabilities", KeyOutcome::kNeedsDecision, "is not an object; it is left out");
  for (const auto& [name, wanted] : capabilities->items()) network->entry["capabilities"][name] = wanted;
  plugin.SetOutcome("capabilities", KeyOutcome::kKept, "as they are");
}

// sriov-cni takes every word but "on" for off.
void TranslateSwitch(const DocumentSection& plugin, const std::string& key, Network* network) {
  const std::string word = plugin.Text(key);
  if (word.empty() || word == "on" || word == "off") return Keep(plugin, key, network);
  Put(plugin, key, "off", network);
  plugin.SetOutcome(key, KeyOutcome::kChanged, "to off, which is what sriov-cni makes of '" + word + "'");
}

// Keys of the network or the runtime: true when `key` is one.
bool TranslateCommon(const DocumentSection& plugin, const std::string& key, Network* network) {
  if (Has(kOfNetwork, key)) {
    // In a list, the network's own key counts: libcni replaces the plugin's with it.
    if (network->listed && key != "ipam")
      plugin.SetOutcome(key, KeyOutcome::kDropped, "because the list's own counts");
    return true;
  }
  if (key == "capabilities") {
    TranslateCapabilities(plugin, network);
  } else if (Has(kOfRuntime, key)) {
    Keep(plugin, key, network);
  } else {
    return key == "type";
  }
  return true;
}

void TranslateSriov(const DocumentSection& plugin, Network* network) {
  plugin.SetOutcome("type", KeyOutcome::kChanged, "to railhead");
  for (const auto& [key, value] : plugin.object().items()) {
    if (value.is_null() || TranslateCommon(plugin, key, network)) continue;
    if (Has(kSameInSriov, key)) {
      Keep(plugin, key, network);
    } else if (key == "spoofchk" || key == "trust") {
      TranslateSwitch(plugin, key, network);
    } else if (key == "logLevel" || key == "logFile") {
      plugin.SetOutcome(key, KeyOutcome::kDropped, "because railhead answers with errors and writes no log");
    } else {
      std::vector<std::string> known(std::begin(kSameInSriov), std::end(kSameInSriov));
      known.insert(known.end(), {"spoofchk", "trust", "ipam", "logLevel", "logFile"});
      plugin.MarkUnknown(key, known);
    }
  }
}

void TranslateHostDevice(const DocumentSection& plugin, Network* network) {
  plugin.SetOutcome(
      "type", KeyOutcome::kNeedsDecision,
      "to railhead; pools of fabric.json give VFs: where whole PFs were given, write \"device\": "
      "\"pf\" there");
  for (const auto& [key, value] : plugin.object().items()) {
    if (value.is_null() || TranslateCommon(plugin, key, network)) continue;
    if (key == "deviceID" || key == "pciBusID") {
      Keep(plugin, key, network);
    } else if (key == "device" || key == "hwaddr" || key == "kernelpath") {
      plugin.SetOutcome(
          key, KeyOutcome::kNeedsDecision,
          "railhead finds a device by its PCI address, which kubelet gives: name a resource for the "
          "network, or write deviceID");
    } else {
      plugin.MarkUnknown(key, {"deviceID", "pciBusID"});
    }
  }
}

void TranslateSysctls(const DocumentSection& tuning, OrderedJson* rest, Network* network) {
  const DocumentSection sysctls = tuning.Inner("sysctl");
  if (!sysctls.object().is_object())
    return tuning.SetOutcome("sysctl", KeyOutcome::kNeedsDecision, "is not an object; it is left out");
  for (const auto& [name, value] : sysctls.object().items()) {
    if (name.starts_with("net.") || name.starts_with("net/")) {
      network->entry["sysctl"][name] = value;
      sysctls.SetOutcome(name, KeyOutcome::kKept, "as it is");
    } else {
      (*rest)["sysctl"][name] = value;
      sysctls.SetOutcome(name, KeyOutcome::kKept, "by tuning, which stays in the chain for it");
    }
  }
}

bool IsSetByTuning(const std::string& key, const Json& value) {
  if (key == "promisc") return value == true;
  if (key == "mtu" || key == "txQLen") return value.is_number() && value != 0;
  return !value.is_string() || !value.get_ref<const std::string&>().empty();
}

void TranslateTuning(const DocumentSection& tuning, Network* network) {
  OrderedJson rest;
  tuning.SetOutcome("type", KeyOutcome::kDropped, "because railhead does what it was chained for");
  for (const auto& [key, value] : tuning.object().items()) {
    if (value.is_null() || key == "ipam" || TranslateCommon(tuning, key, network)) continue;
    if (key == "sysctl") {
      TranslateSysctls(tuning, &rest, network);
    } else if (key == "dataDir") {
      tuning.SetOutcome(key, KeyOutcome::kDropped, "because the journal has what DEL restores");
    } else if (!Has(std::initializer_list<const char*>{"mac", "mtu", "promisc", "txQLen", "allmulti"}, key)) {
      tuning.MarkUnknown(key, {"mac", "mtu", "promisc", "txQLen", "allmulti", "sysctl", "dataDir"});
    } else if (!IsSetByTuning(key, value)) {
      tuning.SetOutcome(key, KeyOutcome::kDropped, "because it changes nothing");
    } else {
      const bool other = network->entry.contains(key) && network->entry[key] != OrderedJson(value);
      if (other)
        network->keys.Set(network->origins[key], KeyOutcome::kDropped, "because tuning sets another one");
      Put(tuning, key, value, network);
      tuning.SetOutcome(key, KeyOutcome::kKept, "as it is, of railhead");
    }
  }
  if (rest.empty()) return;
  rest["type"] = "tuning";
  tuning.SetOutcome("type", KeyOutcome::kKept, "in the chain, for settings other than network sysctls");
  network->others.push_back(std::move(rest));
}

void TranslateRdma(const DocumentSection& rdma, Network* network) {
  network->exclusive_rdma = true;
  rdma.SetOutcome(
      "type", KeyOutcome::kDropped,
      "because railhead moves the RDMA device itself; rdmaMode of fabric.json is exclusive, without which "
      "rdma-cni does nothing");
  const DocumentSection args = rdma.Inner("args").Inner("cni");
  args.SetOutcome("debug", KeyOutcome::kDropped, "because railhead writes no log");
  args.SetOutcome("rdmaDeviceName", KeyOutcome::kNeedsDecision,
                  "railhead does not rename RDMA devices; it is left out");
  rdma.SetOutcome(
      "rdmaQoS", KeyOutcome::kNeedsDecision,
      "railhead sets nothing of the kind on the device; trafficClass of the rail tells NCCL; it is left out");
  for (const auto& [key, value] : rdma.object().items()) {
    if (Has(kOfNetwork, key) && key != "ipam")
      rdma.SetOutcome(key, KeyOutcome::kDropped, "because the list's own counts");
  }
  rdma.SetOutcome("capabilities", KeyOutcome::kDropped, "because railhead needs none for it");
  rdma.SetRemaining(KeyOutcome::kNeedsDecision, "rdma does not know it and ignores it; it is left out");
}

void TranslateSbr(const DocumentSection& sbr, Network* network) {
  sbr.SetOutcome(
      "type", KeyOutcome::kDropped,
      "because railhead makes a table and rules for each rail, and the connected route stays in main");
  sbr.SetOutcome("addSourceHints", KeyOutcome::kDropped,
                 "because the routes of a rail name their source address");
  if (sbr.Find("table") != nullptr) Keep(sbr, "table", network);
  for (const auto& [key, value] : sbr.object().items()) {
    if (Has(kOfNetwork, key) && key != "ipam")
      sbr.SetOutcome(key, KeyOutcome::kDropped, "because the list's own counts");
  }
  sbr.SetRemaining(KeyOutcome::kNeedsDecision, "sbr does not know it and ignores it; it is left out");
}

}  // namespace

void TranslateMainPlugin(const DocumentSection& plugin, Network* network) {
  if (plugin.Text("type") == "sriov") return TranslateSriov(plugin, network);
  if (plugin.Text("type") == "host-device") return TranslateHostDevice(plugin, network);
  network->usable = false;
  plugin.SetRemaining(KeyOutcome::kNeedsDecision,
                      plugin.Text("type") + " has nothing to take its place here: rails are Ethernet");
}

void TranslateChained(const DocumentSection& plugin, Network* network) {
  const std::string type = plugin.Text("type");
  if (type == "tuning") return TranslateTuning(plugin, network);
  if (type == "rdma") return TranslateRdma(plugin, network);
  if (type == "sbr") return TranslateSbr(plugin, network);
  network->others.emplace_back(plugin.object());
  plugin.SetRemaining(KeyOutcome::kKept, "in the chain as it is");
  if (!Has(kGoOn, type))
    plugin.SetOutcome("type", KeyOutcome::kNeedsDecision,
                      "stays in the chain behind railhead; whether " + type +
                          " goes on with railhead's interface is not known here");
}

}  // namespace railhead::migrate
