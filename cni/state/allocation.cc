#include "cni/state/allocation.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

// Device ids become file names.
Result<std::string> PathOf(const Root& root, const std::string& device_id) {
  const bool safe = !device_id.empty() && device_id.size() <= 63 && device_id[0] != '.' &&
                    std::ranges::all_of(device_id, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == ':' || c == '.' || c == '-' || c == '_';
                    });
  if (!safe) return Fail(ErrorCode::kInvalid, "'" + device_id + "' is not a device id");
  return paths::Allocations(root) + "/" + device_id + ".json";
}

}  // namespace

std::string PcideviceVariable(const std::string& resource) {
  std::string name = "PCIDEVICE_";
  for (const char c : resource) {
    name += c == '.' || c == '/' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

Result<std::optional<AllocationRecord>> ReadAllocation(const Root& root, const std::string& device_id) {
  const std::string path = RH_TRY(PathOf(root, device_id));
  const auto text = RH_TRY(ReadRootFile(path));
  if (!text) return std::nullopt;
  return RH_TRY(ParseRecord<AllocationRecord>(*text, path));
}

Result<void> WriteAllocation(const Root& root, const AllocationRecord& record) {
  return WriteAllocations(root, {record});
}

Result<void> WriteAllocations(const Root& root, const std::vector<AllocationRecord>& records) {
  std::vector<std::string> contents;
  std::vector<FileContent> files;
  contents.reserve(records.size());
  files.reserve(records.size());
  for (const AllocationRecord& record : records) {
    std::string path = RH_TRY(PathOf(root, record.device_id));
    contents.push_back(RH_TRY(FormatRecord(record, "the allocation of " + record.device_id, 2)));
    files.push_back({std::move(path), contents.back()});
  }
  RH_TRY(MakeStateFolder(root, paths::Allocations(root)));
  return WriteAllAtomic(std::move(files), Sync::kDurable);
}

namespace {

void AddIds(JsonReader& entry, const nlohmann::json& list, std::vector<std::string>& ids) {
  if (!list.is_array()) return entry.Fail("DeviceIDs", "is not a list of device ids");
  for (const auto& id : list) {
    if (!id.is_string()) return entry.Fail("DeviceIDs", "has an id that is not a string");
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
  // A UID comes from CNI_ARGS: the path must not leave the folder.
  if (pod_uid.empty() || pod_uid[0] == '.' || pod_uid.find('/') != std::string::npos) return false;
  const auto pods = ListDirectory(paths::KubeletPods(root));
  return pods && *pods && !(*pods)->empty() &&
         std::find((*pods)->begin(), (*pods)->end(), pod_uid) == (*pods)->end();
}

}  // namespace railhead
