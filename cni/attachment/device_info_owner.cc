#include "cni/attachment/device_info_owner.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "cni/attachment/device_info_path.h"
#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

namespace railhead::attachment {
namespace {

// "pci": {"pci-address": ...} or, for the device of a virtual machine, the same in "vdpa".
bool Names(const std::string& text, const AttachedDevice& device) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  return json.is_object() && std::any_of(json.begin(), json.end(), [&](const nlohmann::json& part) {
           const auto address = part.is_object() ? part.find("pci-address") : part.end();
           return address != part.end() && (*address == device.device || *address == device.KubeletId());
         });
}

}  // namespace

std::string DeviceInfoFileOf(const Root& root, const JournalEntry& entry) {
  const std::string name = NameOfDeviceInfoFile(entry.device_info_file);
  return name.empty() || entry.devices.size() != 1 ? "" : paths::CniDeviceInfos(root) + "/" + name;
}

Result<DeviceInfoOwner> OwnerOfDeviceInfoFile(const Root& root, const std::string& file,
                                              const AttachedDevice& device) {
  RH_TRY(CheckStateFolder(root, paths::CniDeviceInfos(root)));
  const auto opened = OpenOwnFile(file, O_RDONLY);
  if (!opened && opened.error().sys_errno == ENOENT) return DeviceInfoOwner::kNobody;
  // A link, a socket, or what else no writer of ours makes.
  constexpr std::array kNoFile{0, ELOOP, ENXIO};
  if (!opened && Contains(kNoFile, opened.error().sys_errno)) return DeviceInfoOwner::kOthers;
  if (!opened) return Fail(opened.error());
  const auto text = ReadFile("/proc/self/fd/" + std::to_string(opened->get()));
  return text && *text && Names(**text, device) ? DeviceInfoOwner::kOurs : DeviceInfoOwner::kOthers;
}

Result<void> RefuseDeviceInfoFileOfOthers(const Root& root, const JournalEntry& entry) {
  const std::string file = DeviceInfoFileOf(root, entry);
  if (file.empty()) return {};
  const AttachedDevice& device = entry.devices.front();
  if (RH_TRY(OwnerOfDeviceInfoFile(root, file, device)) != DeviceInfoOwner::kOthers) return {};
  return Fail(ErrorCode::kPermission,
              "network configuration: /runtimeConfig/CNIDeviceInfoFile: '" + entry.device_info_file +
                  "' is there already, and is not of device " + device.device,
              "leave the key out of the network: the runtime names a file for each attachment; if no pod has "
              "the file any more: rm " +
                  entry.device_info_file);
}

}  // namespace railhead::attachment
