#include "cni/state/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

void AddIds(JsonReader& entry, const nlohmann::json& list, std::vector<std::string>& ids) {
  if (!list.is_array()) return entry.Fail("DeviceIDs", "is no list of device ids");
  for (const auto& id : list) {
    if (!id.is_string()) return entry.Fail("DeviceIDs", "has an id that is no string");
    ids.push_back(id.get<std::string>());
  }
}

ContainerDevices ReadEntry(JsonReader& entry) {
  ContainerDevices devices;
  devices.pod_uid = entry.RequiredString("PodUID");
  devices.container = entry.RequiredString("ContainerName");
  devices.resource = entry.RequiredString("ResourceName");
  const nlohmann::json* ids = entry.Raw("DeviceIDs");
  if (ids == nullptr) return devices;
  if (!ids->is_object()) {
    AddIds(entry, *ids, devices.ids);
    return devices;
  }
  for (const auto& of_node : *ids) AddIds(entry, of_node, devices.ids);
  return devices;
}

}  // namespace

Result<std::vector<ContainerDevices>> ParseCheckpoint(const std::string& text, const std::string& what) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what, kMaxFileSize));
  JsonReader reader = document.Root();
  std::vector<ContainerDevices> all;
  auto data = reader.Object("Data");
  if (!data) reader.Fail("Data", "is missing", "is this kubelet's checkpoint?");
  if (data) {
    for (JsonReader& entry : data->Objects("PodDeviceEntries")) all.push_back(ReadEntry(entry));
  }
  RH_TRY(reader.status());
  return all;
}

Result<std::vector<ContainerDevices>> ReadCheckpoint(const Root& root) {
  const std::string path = paths::KubeletCheckpoint(root);
  const auto text = RH_TRY(ReadRootFile(path));
  if (!text) return std::vector<ContainerDevices>{};
  return ParseCheckpoint(*text, path);
}

bool KubeletForgot(const Root& root, const std::string& pod_uid) {
  // A UID comes from CNI_ARGS: it must not lead elsewhere.
  if (pod_uid.empty() || pod_uid[0] == '.' || pod_uid.find('/') != std::string::npos) return false;
  const auto pods = ListDirectory(paths::KubeletPods(root));
  return pods && *pods && !(*pods)->empty() &&
         std::find((*pods)->begin(), (*pods)->end(), pod_uid) == (*pods)->end();
}

}  // namespace railhead
