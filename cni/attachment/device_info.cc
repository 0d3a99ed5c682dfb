#include "cni/attachment/device_info.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cni/state/paths.h"
#include "netns/base/state_folder.h"

namespace railhead::attachment {
namespace {

constexpr std::string_view kVar = "/var";
constexpr std::string_view kFolder = "/var/run/k8s.cni.cncf.io/devinfo/cni/";

// The file's name in the folder; "": it is in another one. /var/run is a link to /run.
std::string NameOf(std::string_view path) {
  if (path.starts_with("/var/")) path.remove_prefix(kVar.size());
  const std::string_view run = kFolder.substr(kVar.size());
  if (!path.starts_with(run)) return "";
  path.remove_prefix(run.size());
  const bool plain = path != "." && path != ".." && path.find('/') == std::string_view::npos &&
                     path.find('\0') == std::string_view::npos;
  return plain ? std::string(path) : "";
}

std::string FileOf(const Root& root, const JournalEntry& entry) {
  const std::string name = NameOf(entry.device_info_file);
  return name.empty() ? "" : paths::CniDeviceInfos(root) + "/" + name;
}

}  // namespace

std::string RefusalOfDeviceInfoFile(const std::string& path) {
  if (!path.starts_with("/")) return "'" + path + "' is not an absolute path";
  return NameOf(path).empty() ? "'" + path + "' is not a file in " + std::string(kFolder) : "";
}

Result<void> WriteDeviceInfoFile(const Root& root, const JournalEntry& entry) {
  const std::string file = FileOf(root, entry);
  if (file.empty() || entry.devices.size() != 1) return {};
  const AttachedDevice& device = entry.devices.front();
  nlohmann::ordered_json pci{{"pci-address", device.device}};
  if (!device.pf.empty()) pci["pf-pci-address"] = device.pf;
  if (!device.rdma.device.empty()) pci["rdma-device"] = device.rdma.device;
  const nlohmann::ordered_json json{{"type", "pci"}, {"version", "1.1.0"}, {"pci", std::move(pci)}};
  return WriteStateFile(root, file, json.dump());
}

Result<void> RemoveDeviceInfoFile(const Root& root, const JournalEntry& entry) {
  const std::string file = FileOf(root, entry);
  if (file.empty() || entry.devices.size() != 1) return {};
  const auto text = RH_TRY(ReadFile(file));
  const auto json = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (text && json.is_object()) {
    const auto pci = json.value("pci", nlohmann::json::object());
    const bool others =
        pci.is_object() && pci.contains("pci-address") && pci["pci-address"] != entry.devices.front().device;
    if (others) return {};
  }
  RH_TRY(RemoveWritten(file));
  return {};
}

}  // namespace railhead::attachment
