// The container runtime's configuration, and other users of the node's devices.
#include <array>

#include "deviceplugin/tools/doctor/containerd_config.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "netns/base/files.h"
#include "netns/json/json_reader.h"

namespace railhead::doctor {
namespace {

constexpr const char* kSocketDirectory = "/var/lib/kubelet/device-plugins";
constexpr const char* kRegistryDirectory = "/var/lib/kubelet/plugins_registry";
constexpr const char* kCniDirectory = "/etc/cni/net.d";

// How plugins name a device in their configuration: host-device, sriov-cni, macvlan, ipvlan.
constexpr std::array kDeviceFields = {"device", "pciBusID", "deviceID", "master"};

Fact<std::vector<std::string>> ReadSockets(const Root& root) {
  using Names = Fact<std::vector<std::string>>;
  std::vector<std::string> sockets;
  bool any = false;
  for (const char* directory : {kSocketDirectory, kRegistryDirectory}) {
    const auto names = ListDirectory(root.Path(directory));
    if (!names) return Names::Unknown(Describe(names.error()));
    if (!*names) continue;
    any = true;
    for (const std::string& name : **names) {
      const bool ours = name == "kubelet.sock" || name.starts_with("railhead-");
      if (name.ends_with(".sock") && !ours) sockets.push_back(name);
    }
  }
  if (!any) return Names::Unknown(std::string("there is no ") + kSocketDirectory);
  return sockets;
}

CniUse UseOf(const std::string& file, JsonReader plugin) {
  CniUse use;
  use.file = file;
  use.type = plugin.String("type").value_or("");
  for (const char* field : kDeviceFields) {
    if (auto device = plugin.String(field)) use.devices.push_back(*std::move(device));
  }
  return use;
}

// A file that is no CNI configuration is the runtime's to complain about.
void AddUses(const std::string& file, const std::string& text, std::vector<CniUse>* uses) {
  const auto document = JsonDocument::Parse(text, file);
  if (!document) return;
  JsonReader reader = document->Root();
  if (!reader.status()) return;
  if (!reader.Has("plugins")) {
    uses->push_back(UseOf(file, reader));
    return;
  }
  for (const JsonReader& plugin : reader.Objects("plugins")) uses->push_back(UseOf(file, plugin));
}

bool IsConfiguration(const std::string& name) {
  return name.ends_with(".conf") || name.ends_with(".conflist") || name.ends_with(".json");
}

Fact<std::vector<CniUse>> ReadCni(const Root& root) {
  using Uses = Fact<std::vector<CniUse>>;
  const auto names = ListDirectory(root.Path(kCniDirectory));
  if (!names) return Uses::Unknown(Describe(names.error()));
  if (!*names) return Uses::Unknown(std::string("there is no ") + kCniDirectory);
  std::vector<CniUse> uses;
  for (const std::string& name : **names) {
    if (!IsConfiguration(name)) continue;
    const auto text = ReadFile(root.Path(kCniDirectory) + "/" + name);
    if (!text) return Uses::Unknown(Describe(text.error()));
    if (*text) AddUses(name, **text, &uses);
  }
  return uses;
}

}  // namespace

void ReadRuntime(const Root& root, FactKinds kinds, NodeFacts* facts) {
  if (kinds.Has(FactKind::kCdi)) {
    std::vector<std::string> running;
    if (facts->runtimes) {
      for (const ProcessFacts& process : *facts->runtimes) running.push_back(process.name);
    }
    facts->cdi = ReadCdiSwitch(root, running);
  }
  if (kinds.Has(FactKind::kSockets)) facts->plugin_sockets = ReadSockets(root);
  if (kinds.Has(FactKind::kCni)) facts->cni = ReadCni(root);
  if (kinds.Has(FactKind::kKubelet)) facts->kubelet = ReadKubelet(root);
  if (kinds.Has(FactKind::kNetns)) facts->hidden_netns = ReadHiddenDirectories(root);
}

}  // namespace railhead::doctor
