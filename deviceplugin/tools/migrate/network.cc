#include "deviceplugin/tools/migrate/network.h"

#include <utility>

#include "cni/attachment/plugin_config.h"
#include "cni/protocol/cni_result.h"
#include "cni/protocol/plugin.h"
#include "deviceplugin/tools/migrate/addresses.h"
#include "deviceplugin/tools/migrate/chain.h"
#include "deviceplugin/tools/migrate/section.h"
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

void TakeAnnotations(const Section& metadata, Network* network) {
  const Section annotations = metadata.Inner("annotations");
  if (!annotations.object().is_object()) return;
  network->resource = annotations.Text(kResource);
  for (const auto& [key, value] : annotations.object().items()) {
    if (key == kLastApplied) {
      annotations.Say(key, Fate::kDropped, "because kubectl writes it");
      continue;
    }
    network->metadata["annotations"][key] = value;
    annotations.Say(key, Fate::kKept, "as it is");
  }
}

void TakeObject(const Section& object, Network* network) {
  object.Say("apiVersion", Fate::kKept, "as it is");
  object.Say("kind", Fate::kKept, "as it is");
  const Section metadata = object.Inner("metadata");
  for (const char* key : {"name", "namespace", "labels"}) {
    const Json* value = metadata.Find(key);
    if (value == nullptr) continue;
    network->metadata[key] = *value;
    metadata.Say(key, Fate::kKept, "as it is");
  }
  TakeAnnotations(metadata, network);
  metadata.Say("ownerReferences", Fate::kDecide,
               "left out: its owner, the SR-IOV operator for one, writes the network again; change or delete "
               "the owner's object first");
  metadata.SayRest(Fate::kDropped, "because the API server writes it");
}

// Keys of the network itself, of a list or of its only plugin.
void TakeNetworkKeys(const Section& config, Network* network) {
  const std::string version = config.Text("cniVersion");
  const bool supported = IsSupportedCniVersion(version);
  network->list["cniVersion"] = supported ? version : kVersion;
  config.Say(
      "cniVersion", supported ? Fate::kKept : Fate::kChanged,
      supported ? "as it is" : std::string("to ") + kVersion + ", since '" + version + "' is not spoken");
  network->network = config.Text("name").empty() ? network->name : config.Text("name");
  network->list["name"] = network->network;
  config.Say("name", Fate::kKept, "as it is");
  for (const char* key : {"disableCheck", "disableGC", "loadOnlyInlinedPlugins", "cniVersions"}) {
    const Json* value = config.Find(key);
    if (value == nullptr) continue;
    network->list[key] = *value;
    config.Say(key, Fate::kKept, "as it is");
  }
}

Result<void> TakePlugins(const Section& config, const Options& options, Network* network) {
  network->entry["type"] = "railhead";
  network->listed = config.Find("plugins") != nullptr;
  TakeNetworkKeys(config, network);
  const Section list = config.Inner("plugins");
  std::vector<Section> plugins;
  if (!network->listed) plugins.push_back(config);
  for (std::size_t i = 0; network->listed && i < list.object().size(); ++i) {
    const std::string at = list.Place(std::to_string(i));
    if (!list.object()[i].is_object())
      return Fail(ErrorCode::kInvalid, network->source + ": " + at + ": is no object");
    plugins.emplace_back(list.object()[i], at, &network->keys);
  }
  TakeMainPlugin(plugins.front(), network);
  for (std::size_t i = 1; i < plugins.size(); ++i) TakeChained(plugins[i], network);
  if (plugins.front().Find("ipam") == nullptr) {
    // Absent, the rail's subnet would count.
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
  const Section object(definition.object, "", &network.keys);
  TakeObject(object, &network);
  const Json* config = ConfigIn(definition.object);
  if (config == nullptr) {
    network.usable = false;
    network.remarks.emplace_back(
        "It has no configuration of its own: Multus takes that of its name from each node's CNI directory");
    network.keys.Set(Below("/metadata", "name"), Fate::kDecide,
                     "put that configuration into /spec/config, and migrate it then");
    return network;
  }
  RH_TRY(TakePlugins(Section(*config, kConfigAt, &network.keys), options, &network));
  if (network.resource.empty() && !network.entry.contains("deviceID") &&
      !network.entry.contains("pciBusID")) {
    network.keys.Set("/metadata/name", Fate::kDecide,
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
  const PluginConfig config = RH_TRY_WRAP(ReadPluginConfig(request), network.source);
  if (config.ipam_type == kOwnIpam) RH_TRY_WRAP(ReadIpamFields(request.config, {}), network.source);
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
