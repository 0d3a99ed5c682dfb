#include "cni/state/cdi_spec.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cni/state/paths.h"
#include "cni/state/slot_name.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/sys/pci_address.h"

namespace railhead {

namespace {

using Json = nlohmann::ordered_json;

// Of paths::CdiSpec().
constexpr std::string_view kSpecPrefix = "railhead-";
constexpr std::string_view kSpecSuffix = ".json";

std::string SpecText(const std::string& kind, const CdiDevice& device) {
  Json edits = Json::object();
  for (const auto& path : device.device_nodes)
    edits["deviceNodes"].push_back({{"path", path}, {"permissions", "rw"}});
  for (const auto& node : device.renamed_nodes) {
    edits["deviceNodes"].push_back(
        {{"path", node.container_path}, {"hostPath", node.host_path}, {"permissions", "rw"}});
  }
  for (const auto& mount : device.mounts) {
    edits["mounts"].push_back({{"hostPath", mount.host_path},
                               {"containerPath", mount.container_path},
                               {"options", {"ro", "nosuid", "nodev", "noexec", "bind"}}});
  }
  if (!device.env.empty()) edits["env"] = device.env;
  // A device without edits is refused by the runtimes' CDI library.
  if (edits.empty()) edits["env"] = {"RAILHEAD_NIC=" + device.name};
  Json json;
  json["cdiVersion"] = "0.5.0";
  json["kind"] = kind;
  json["devices"] = {{{"name", device.name}, {"containerEdits", edits}}};
  return json.dump(2) + "\n";
}

// May throw json::exception.
CdiDevice DeviceOf(std::string name, const nlohmann::json& edits) {
  CdiDevice device;
  device.name = std::move(name);
  static const nlohmann::json none = nlohmann::json::array();
  for (const auto& node : edits.value("deviceNodes", none)) {
    if (node.contains("hostPath")) {
      device.renamed_nodes.push_back({node.at("hostPath"), node.at("path")});
    } else {
      device.device_nodes.push_back(node.at("path"));
    }
  }
  for (const auto& mount : edits.value("mounts", none))
    device.mounts.push_back({mount.at("hostPath"), mount.at("containerPath")});
  device.env = edits.value("env", std::vector<std::string>{});
  return device;
}

}  // namespace

Result<void> WriteCdiSpec(const Root& root, const CdiDevice& device) {
  return WriteCdiSpec(root, paths::CdiSpec(root, device.name), kCdiKind, device);
}

Result<void> WriteCdiSpec(const Root& root, const std::string& path, const std::string& kind,
                          const CdiDevice& device) {
  const std::string text = SpecText(kind, device);
  const std::string record = paths::CdiRecords(root) + "/" + path.substr(path.rfind('/') + 1);
  if (RH_TRY(ReadFile(record)) != text) RH_TRY(WriteStateFile(root, record, text));
  // Runtimes read all specs again after every change, so an equal file is not written.
  if (RH_TRY(ReadFile(path)) == text) return {};
  return WriteStateFile(root, path, text);
}

Result<std::optional<CdiDevice>> ReadCdiSpec(const Root& root, const std::string& name) {
  const std::string path = paths::CdiSpec(root, name);
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return std::nullopt;
  try {
    const auto device = nlohmann::json::parse(*text).at("devices").at(0);
    return DeviceOf(device.at("name"), device.at("containerEdits"));
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorCode::kMalformed, path + ": " + error.what(),
                "delete the pod; its successor gets a new attachment");
  }
}

Result<bool> RemoveCdiSpec(const Root& root, const std::string& name) {
  const std::string path = paths::CdiSpec(root, name);
  const std::string record = paths::CdiRecords(root) + "/" + path.substr(path.rfind('/') + 1);
  if (!RH_TRY(ReadFile(record))) return RemoveFile(record + std::string(kTemporarySuffix));
  RH_TRY(RemoveWritten(path));
  return RemoveWritten(record);
}

Result<std::vector<std::string>> ListCdiRecords(const Root& root) {
  auto names = RH_TRY(ListDirectory(paths::CdiRecords(root))).value_or(std::vector<std::string>{});
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSpecSuffix); });
  return names;
}

std::optional<std::string> DeviceOfCdiSpec(const std::string& file_name) {
  if (!file_name.starts_with(kSpecPrefix) || !file_name.ends_with(kSpecSuffix)) return std::nullopt;
  std::string id =
      file_name.substr(kSpecPrefix.size(), file_name.size() - kSpecPrefix.size() - kSpecSuffix.size());
  const auto address = PciAddress::Parse(id);
  if (!IsSlot(id) && (!address || address->ToString() != id)) return std::nullopt;
  return id;
}

Result<bool> IsCdiSpecIntact(const Root& root, const std::string& file_name) {
  const auto record = RH_TRY(ReadFile(paths::CdiRecords(root) + "/" + file_name));
  return !record || RH_TRY(ReadFile(paths::CdiDirectory(root) + "/" + file_name)) == record;
}

Result<bool> RepairCdiSpec(const Root& root, const std::string& file_name) {
  if (RH_TRY(IsCdiSpecIntact(root, file_name))) return false;
  return PublishCdiSpec(root, file_name);
}

Result<bool> PublishCdiSpec(const Root& root, const std::string& file_name) {
  const auto record = RH_TRY(ReadFile(paths::CdiRecords(root) + "/" + file_name));
  if (!record) return false;
  const std::string path = paths::CdiDirectory(root) + "/" + file_name;
  RH_TRY(WriteStateFile(root, path, *record));
  return true;
}

}  // namespace railhead
