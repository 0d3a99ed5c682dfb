#include "deviceplugin/tools/migrate/network.h"

#include <string>

#include "cni/attachment/plugin_config.h"
#include "cni/fabric/network_policy.h"
#include "cni/protocol/cni_request.h"
#include "cni/protocol/cni_result.h"
#include "deviceplugin/tools/migrate/document_section.h"
#include "deviceplugin/tools/migrate/documents.h"
#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "deviceplugin/tools/migrate/translate_ipam.h"
#include "deviceplugin/tools/migrate/translate_plugins.h"
#include "ipam/plugin/fields.h"

namespace railhead::migrate {
namespace {

using Json = nlohmann::json;

constexpr const char* kConfigAt = "/spec/config";
constexpr const char* kResource = "k8s.v1.cni.cncf.io/resourceName";
constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr const char* kVersion = "1.0.0";

const Json* ConfigIn(const Json& object) {
  const auto spec = object.find("spec");
  if (spec == object.end() || !spec->is_object()) return nullptr;
  const auto config = spec->find("config");
  return config == spec->end() || !config->is_object() ? nullptr : &*config;
}

std::string TypeOf(const Json& plugin) {
  if (!plugin.is_object()) return {};
  const auto type = plugin.find("type");
  return type != plugin.end() && type->is_string() ? type->get<std::string>() : "";
}

const Json* MainPlugin(const Json& config) {
  const auto plugins = config.find("plugins");
  if (plugins == config.end()) return &config;
  return plugins->is_array() && !plugins->empty() ? &plugins->front() : nullptr;
}

const Json* AnnotationsIn(const Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return nullptr;
  const auto annotations = metadata->find("annotations");
  return annotations == metadata->end() || !annotations->is_object() ? nullptr : &*annotations;
}

void TranslateAnnotations(const DocumentSection& metadata, Network* network) {
  const DocumentSection annotations = metadata.Inner("annotations");
  if (!annotations.object().is_object()) return;
  network->resource = annotations.Text(kResource);
  for (const auto& [key, value] : annotations.object().items()) {
    if (key == kLastApplied) {
      annotations.SetOutcome(key, KeyOutcome::kDropped, "because kubectl writes it");
      continue;
    }
    network->metadata["annotations"][key] = value;
    annotations.SetOutcome(key, KeyOutcome::kKept, "as it is");
  }
}

void TranslateObject(const DocumentSection& object, Network* network) {
  object.SetOutcome("apiVersion", KeyOutcome::kKept, "as it is");
  object.SetOutcome("kind", KeyOutcome::kKept, "as it is");
  const DocumentSection metadata = object.Inner("metadata");
  for (const char* key : {"name", "namespace", "labels"}) {
    const Json* value = metadata.Find(key);
    if (value == nullptr) continue;
    network->metadata[key] = *value;
    metadata.SetOutcome(key, KeyOutcome::kKept, "as it is");
  }
  TranslateAnnotations(metadata, network);
  metadata.SetOutcome(
      "ownerReferences", KeyOutcome::kNeedsDecision,
      "left out: its owner, the SR-IOV operator for one, writes the network again; change or delete "
      "the owner's object first");
  metadata.SetRemaining(KeyOutcome::kDropped, "because the API server writes it");
}

// Keys of the network itself, of a list or of its only plugin.
void TranslateNetworkKeys(const DocumentSection& config, Network* network) {
  const std::string version = config.Text("cniVersion");
  const bool supported = IsSupportedCniVersion(version);
  network->list["cniVersion"] = supported ? version : kVersion;
  config.SetOutcome(
      "cniVersion", supported ? KeyOutcome::kKept : KeyOutcome::kChanged,
      supported ? "as it is" : std::string("to ") + kVersion + ", since '" + version + "' is not spoken");
  network->network = config.Text("name").empty() ? network->name : config.Text("name");
  network->list["name"] = network->network;
  config.SetOutcome("name", KeyOutcome::kKept, "as it is");
  for (const char* key : {"disableCheck", "disableGC", "loadOnlyInlinedPlugins", "cniVersions"}) {
    const Json* value = config.Find(key);
    if (value == nullptr) continue;
    network->list[key] = *value;
    config.SetOutcome(key, KeyOutcome::kKept, "as it is");
  }
}

Result<void> TranslatePlugins(const DocumentSection& config, const Options& options, Network* network) {
  network->entry["type"] = "railhead";
  network->listed = config.Find("plugins") != nullptr;
  TranslateNetworkKeys(config, network);
  const DocumentSection list = config.Inner("plugins");
  std::vector<DocumentSection> plugins;
  if (!network->listed) plugins.push_back(config);
  for (std::size_t i = 0; network->listed && i < list.object().size(); ++i) {
    const std::string at = list.Place(std::to_string(i));
    if (!list.object()[i].is_object())
      return Fail(ErrorCode::kInvalid, network->source + ": " + at + ": is not an object");
    plugins.emplace_back(list.object()[i], at, &network->keys);
  }
  TranslateMainPlugin(plugins.front(), network);
  for (std::size_t i = 1; i < plugins.size(); ++i) TranslateChained(plugins[i], network);
  if (plugins.front().Find("ipam") == nullptr) {
    // If it were absent, the rail's subnet would count.
    network->entry["ipam"] = OrderedJson::object();
    return {};
  }
  return TranslateIpam(plugins.front().Inner("ipam"), options, network);
}

}  // namespace

bool IsOfSuite(const NetworkDefinition& definition) {
  const Json* config = ConfigIn(definition.object);
  if (config == nullptr) {
    const Json* annotations = AnnotationsIn(definition.object);
    return annotations != nullptr && annotations->contains(kResource);
  }
  const Json* main = MainPlugin(*config);
  const std::string type = main == nullptr ? "" : TypeOf(*main);
  return type == "sriov" || type == "host-device" || type == "ib-sriov";
}

Result<Network> TranslateNetwork(const NetworkDefinition& definition, const Options& options) {
  Network network(definition.object);
  network.source = definition.source;
  network.space = definition.space;
  network.name = definition.name;
  const DocumentSection object(definition.object, "", &network.keys);
  TranslateObject(object, &network);
  const Json* config = ConfigIn(definition.object);
  if (config == nullptr) {
    network.usable = false;
    network.remarks.emplace_back(
        "It has no configuration of its own: Multus takes the one with its name from each node's CNI "
        "directory");
    network.keys.Set(Below("/metadata", "name"), KeyOutcome::kNeedsDecision,
                     "put that configuration into /spec/config, and migrate it then");
    return network;
  }
  RH_TRY(TranslatePlugins(DocumentSection(*config, kConfigAt, &network.keys), options, &network));
  if (network.resource.empty() && !network.entry.contains("deviceID") &&
      !network.entry.contains("pciBusID")) {
    network.keys.Set("/metadata/name", KeyOutcome::kNeedsDecision,
                     std::string("it names no resource (annotation ") + kResource +
                         "), so railhead would attach all of the pod's devices");
  }
  if (!network.usable) network.remarks.emplace_back("Nothing is written for it");
  return network;
}

std::string ConfigOf(const Network& network) {
  OrderedJson config = network.list;
  config.update(network.entry);
  return config.dump();
}

Result<void> CheckNetwork(const Network& network) {
  CniRequest request;
  request.config = ConfigOf(network);
  request.network = network.network;
  const attachment::PluginConfig config = RH_TRY_WRAP(attachment::ReadPluginConfig(request), network.source);
  if (config.ipam_type == kOwnIpam) RH_TRY_WRAP(ipam::ReadIpamFields(request.config, {}), network.source);
  return {};
}

std::string NetworkAsText(const Network& network) {
  OrderedJson config = network.list;
  if (network.others.empty() && !network.list.contains("disableCheck") &&
      !network.list.contains("disableGC")) {
    config.update(network.entry);
  } else {
    config["plugins"] = OrderedJson::array({network.entry});
    for (const OrderedJson& other : network.others) config["plugins"].push_back(other);
  }
  OrderedJson object;
  object["apiVersion"] = "k8s.cni.cncf.io/v1";
  object["kind"] = "NetworkAttachmentDefinition";
  object["metadata"] = network.metadata;
  object["spec"]["config"] = config.dump(2);
  return object.dump(2) + "\n";
}

}  // namespace railhead::migrate
