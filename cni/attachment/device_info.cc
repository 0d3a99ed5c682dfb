#include "cni/attachment/device_info.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

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
  // Hidden names are those of drafts.
  const bool plain = !path.starts_with('.') && path.find('/') == std::string_view::npos &&
                     path.find('\0') == std::string_view::npos;
  return plain ? std::string(path) : "";
}

// "" if the attachment has none.
std::string FileOf(const Root& root, const JournalEntry& entry) {
  const std::string name = NameOf(entry.device_info_file);
  return name.empty() || entry.devices.size() != 1 ? "" : paths::CniDeviceInfos(root) + "/" + name;
}

// The file until it has its name. It is called after the device, which this process holds: beside the file,
// as NAME.new, it could have the name of another pod's file.
std::string DraftOf(const Root& root, const AttachedDevice& device) {
  return paths::CniDeviceInfos(root) + "/.railhead-" + device.device;
}

// "pci": {"pci-address": ...} or, for the device of a virtual machine, the same in "vdpa".
bool Names(const std::string& text, const AttachedDevice& device) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  return json.is_object() && std::any_of(json.begin(), json.end(), [&](const nlohmann::json& part) {
           const auto address = part.is_object() ? part.find("pci-address") : part.end();
           return address != part.end() && (*address == device.device || *address == device.KubeletId());
         });
}

enum class Whose : std::uint8_t { kNobodys, kOurs, kOthers };

Result<Whose> OwnerOf(const Root& root, const std::string& file, const AttachedDevice& device) {
  RH_TRY(CheckStateFolder(root, paths::CniDeviceInfos(root)));
  const auto opened = OpenOwnFile(file, O_RDONLY);
  if (!opened && opened.error().sys_errno == ENOENT) return Whose::kNobodys;
  // A link, a socket, or what else no writer of ours makes.
  constexpr std::array kNoFile{0, ELOOP, ENXIO};
  if (!opened && Contains(kNoFile, opened.error().sys_errno)) return Whose::kOthers;
  if (!opened) return Fail(opened.error());
  const auto text = ReadFile("/proc/self/fd/" + std::to_string(opened->get()));
  return text && *text && Names(**text, device) ? Whose::kOurs : Whose::kOthers;
}

// Takes the name only if it is free or ours: another ADD may write the file at this moment.
Result<void> Publish(const Root& root, const std::string& draft, const std::string& file,
                     const JournalEntry& entry) {
  if (::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE) == 0) return {};
  // EINVAL: some file systems cannot.
  if (errno != EEXIST && errno != EINVAL) return FailSys(errno, "renaming to " + file);
  RH_TRY(RefuseDeviceInfoFileOfOthers(root, entry));
  if (::rename(draft.c_str(), file.c_str()) != 0) return FailSys(errno, "renaming to " + file);
  return {};
}

}  // namespace

std::string RefusalOfDeviceInfoFile(const std::string& path) {
  if (!path.starts_with("/")) return "'" + path + "' is not an absolute path";
  return NameOf(path).empty() ? "'" + path + "' is not a file in " + std::string(kFolder) : "";
}

Result<void> RefuseDeviceInfoFileOfOthers(const Root& root, const JournalEntry& entry) {
  const std::string file = FileOf(root, entry);
  if (file.empty()) return {};
  const AttachedDevice& device = entry.devices.front();
  if (RH_TRY(OwnerOf(root, file, device)) != Whose::kOthers) return {};
  return Fail(ErrorCode::kPermission,
              "network configuration: /runtimeConfig/CNIDeviceInfoFile: '" + entry.device_info_file +
                  "' is there already, and is not of device " + device.device,
              "leave the key out of the network: the runtime names a file for each attachment; if no pod has "
              "the file any more: rm " +
                  entry.device_info_file);
}

Result<void> WriteDeviceInfoFile(const Root& root, const JournalEntry& entry) {
  const std::string file = FileOf(root, entry);
  if (file.empty()) return {};
  const AttachedDevice& device = entry.devices.front();
  nlohmann::ordered_json pci{{"pci-address", device.device}};
  if (!device.pf.empty()) pci["pf-pci-address"] = device.pf;
  if (!device.rdma.device.empty()) pci["rdma-device"] = device.rdma.device;
  const nlohmann::ordered_json json{{"type", "pci"}, {"version", "1.1.0"}, {"pci", std::move(pci)}};
  const std::string draft = DraftOf(root, device);
  RH_TRY(WriteStateFile(root, draft, json.dump()));
  return Publish(root, draft, file, entry);
}

Result<void> RemoveDeviceInfoFile(const Root& root, const JournalEntry& entry) {
  const std::string file = FileOf(root, entry);
  if (file.empty()) return {};
  const AttachedDevice& device = entry.devices.front();
  const Whose whose = RH_TRY(OwnerOf(root, file, device));
  RH_TRY(RemoveWritten(DraftOf(root, device)));
  if (whose == Whose::kOurs) RH_TRY(RemoveFile(file));
  return {};
}

}  // namespace railhead::attachment
