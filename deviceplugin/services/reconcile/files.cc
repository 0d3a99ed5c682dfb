// Files of Railhead without an owner: links, CDI specs, NCCL configurations.
//
// Reading a directory only yields suspects. The pass checks each one again and removes it under the lock of
// the device or the sandbox.
#include "netns/base/files.h"

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "cni/attachment/nccl_step.h"
#include "cni/nccl/nccl_config_files.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "deviceplugin/services/reconcile/reconcile_pass.h"
#include "netns/base/state_folder.h"
#include "netns/sys/pci.h"

namespace railhead::reconcile {
namespace {

std::string PathIn(const std::string& directory, const std::string& name) {
  return directory + "/" + name;
}

constexpr const char* kNoEntry = "no attachment has it";
constexpr const char* kWriterKilled = "its writer was killed";

// The owners with a journal entry, of whichever boot.
struct Owners {
  std::set<std::string> devices;
  std::set<std::string> containers;
};

Owners OwnersIn(const JournalScan& scan) {
  Owners owners;
  for (const auto* entries : {&scan.entries, &scan.earlier}) {
    for (const auto& entry : *entries) {
      owners.containers.insert(entry.key.container_id);
      for (const auto& link : entry.devices) {
        owners.devices.insert(link.device);
        owners.devices.insert(link.KubeletId());
      }
    }
  }
  return owners;
}

void HeldDevices(ReconcilePass& pass, const JournalScan& scan) {
  for (const auto& device : scan.orphaned) {
    const auto free = [&]() -> Result<bool> {
      const auto locks = RH_TRY(TryLock(pass.root, {device}));
      return locks ? RH_TRY(pass.journal.Free(device)) : false;
    };
    pass.Add("held-device", device, kNoEntry, free());
  }
}

// Only specs that have a record: those of other programs and of other railheadd processes have none here.
void CdiSpecs(ReconcilePass& pass, const Owners& owners) {
  const auto records = ListCdiRecords(pass.root);
  if (!records) return pass.Add("cdi-spec", "", "records cannot be listed", Fail(records.error()));
  for (const std::string& name : *records) {
    const auto device = DeviceOfCdiSpec(name);
    const bool owned = !device || owners.devices.contains(*device);
    const auto intact = IsCdiSpecIntact(pass.root, name);
    if (owned && intact && *intact) continue;
    const auto repair = [&]() -> Result<bool> {
      const auto locks = RH_TRY(TryLock(pass.root, {device.value_or(name)}));
      if (!locks) return false;
      if (owned) return RepairCdiSpec(pass.root, name);
      return RH_TRY(pass.journal.HoldsDevice(*device)) ? false : RH_TRY(RemoveCdiSpec(pass.root, *device));
    };
    pass.Add(owned ? "cdi-spec-rewrite" : "cdi-spec", name,
             owned ? "somebody has removed or changed it" : kNoEntry, repair());
  }
}

// Removes the directory with all of its files.
Result<bool> ClearNcclConfig(const ReconcilePass& pass, const std::string& container) {
  const auto lock = attachment::LockSandbox(pass.root, container, std::chrono::milliseconds(0));
  if (!lock && lock.error().code == ErrorCode::kTimeout) return false;
  if (!lock) return Fail(lock.error());
  if (RH_TRY(pass.journal.HoldsSandbox(container))) return false;
  RH_TRY(nccl::RemoveNcclConfig(pass.root, container));
  return true;
}

void NcclConfigs(ReconcilePass& pass, const Owners& owners) {
  for (const auto& container : NamesIn(pass, "nccl-config", paths::NcclConfigRoot(pass.root))) {
    if (!owners.containers.contains(container))
      pass.Add("nccl-config", container, kNoEntry, ClearNcclConfig(pass, container));
  }
}

bool IsFilled(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

void DeviceNcclConfigs(ReconcilePass& pass, const Owners& owners) {
  for (const auto& device : NamesIn(pass, "device-nccl-config", paths::DeviceNcclConfigRoot(pass.root))) {
    if (owners.devices.contains(device) || !IsFilled(nccl::DeviceNcclConfigPath(pass.root, device))) continue;
    const auto clear = [&]() -> Result<bool> {
      const auto locks = RH_TRY(TryLock(pass.root, {device}));
      if (!locks || RH_TRY(pass.journal.HoldsDevice(device))) return false;
      RH_TRY(nccl::ClearDeviceNcclConfig(pass.root, device));
      return true;
    };
    pass.Add("device-nccl-config", device, kNoEntry, clear());
  }
}

}  // namespace

std::vector<std::string> NamesIn(ReconcilePass& pass, const char* what, const std::string& directory) {
  const auto names = ListDirectory(directory);
  if (!names) pass.Add(what, directory, "cannot be read", Fail(names.error()));
  return names ? names->value_or(std::vector<std::string>{}) : std::vector<std::string>{};
}

void ReconcileFiles(ReconcilePass& pass, const JournalScan& scan) {
  const Owners owners = OwnersIn(scan);
  if (!pass.Stopped()) HeldDevices(pass, scan);
  if (!pass.Stopped()) CdiSpecs(pass, owners);
  if (!pass.Stopped()) NcclConfigs(pass, owners);
  if (!pass.Stopped()) DeviceNcclConfigs(pass, owners);
  if (!pass.Stopped()) ReconcilePartialFiles(pass);
}

// Files that a killed writer left beside its own, and the socket that was to replace ADD's. Nothing reads
// them, but they would stay.

namespace {

bool IsTemporaryIn(const StateFolder& folder, std::string_view name) {
  if (!name.ends_with(kTemporarySuffix)) return false;
  name.remove_suffix(kTemporarySuffix.size());
  return name.starts_with(folder.prefix) && name.ends_with(folder.suffix);
}

void RemoveTemporaries(ReconcilePass& pass, const StateFolder& folder, const std::string& directory) {
  if (const auto safe = CheckStateFolder(pass.root, directory); !safe)
    return pass.Add("partial-file", directory, "is not safe", Fail(safe.error()));
  for (const std::string& name : NamesIn(pass, "partial-file", directory)) {
    const std::string path = PathIn(directory, name);
    if (IsTemporaryIn(folder, name)) pass.Add("partial-file", path, kWriterKilled, RemoveAbandoned(path));
  }
}

// Sockets without their final name. Their maker holds the lock until the socket has that name, so this lists
// them again under the lock.
void RemoveSockets(ReconcilePass& pass) {
  const std::string socket = paths::BindSocket(pass.root);
  const std::string folder = socket.substr(0, socket.rfind('/') + 1);
  const auto unnamed = [&] {
    auto names = NamesIn(pass, "partial-file", folder);
    std::erase_if(names, [&](const std::string& name) { return !(folder + name).starts_with(socket + "."); });
    return names;
  };
  if (unnamed().empty()) return;
  const auto lock = FileLock::Acquire(paths::BindSocketLock(pass.root), std::chrono::milliseconds(0));
  if (!lock && lock.error().code == ErrorCode::kTimeout) return;
  if (!lock) return pass.Add("partial-file", socket, kWriterKilled, Fail(lock.error()));
  for (const std::string& name : unnamed())
    pass.Add("partial-file", folder + name, kWriterKilled, RemoveFile(folder + name));
}

}  // namespace

void ReconcilePartialFiles(ReconcilePass& pass) {
  for (const StateFolder& folder : StateFolders()) {
    const std::string directory = pass.root.Path(folder.path);
    if (folder.owner == StateOwner::kStore) continue;
    RemoveTemporaries(pass, folder, directory);
    if (folder.owner != StateOwner::kSandbox) continue;
    for (const std::string& name : NamesIn(pass, "partial-file", directory)) {
      const std::string sandbox = PathIn(directory, name);
      RemoveTemporaries(pass, folder, sandbox);
      // A writer there creates the directory again.
      if (RemoveEmptyDirectory(sandbox)) pass.Add("partial-file", sandbox, kWriterKilled, true);
    }
  }
  RemoveSockets(pass);
}

}  // namespace railhead::reconcile
