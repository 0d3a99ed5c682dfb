#include "cni/attachment/device_info.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/attachment/device_info_owner.h"
#include "cni/state/paths.h"
#include "netns/base/state_folder.h"

namespace railhead::attachment {
namespace {

// The file until it has its name. It is called after the device, which this process holds: beside the file,
// as NAME.new, it could have the name of another pod's file.
std::string DraftOf(const Root& root, const AttachedDevice& device) {
  return paths::CniDeviceInfos(root) + "/.railhead-" + device.device;
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

Result<void> WriteDeviceInfoFile(const Root& root, const JournalEntry& entry) {
  const std::string file = DeviceInfoFileOf(root, entry);
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
  const std::string file = DeviceInfoFileOf(root, entry);
  if (file.empty()) return {};
  const AttachedDevice& device = entry.devices.front();
  const DeviceInfoOwner owner = RH_TRY(OwnerOfDeviceInfoFile(root, file, device));
  RH_TRY(RemoveWritten(DraftOf(root, device)));
  if (owner == DeviceInfoOwner::kOurs) RH_TRY(RemoveFile(file));
  return {};
}

}  // namespace railhead::attachment
