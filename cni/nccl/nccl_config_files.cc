#include "cni/nccl/nccl_config_files.h"

#include <sys/socket.h>

#include <algorithm>
#include <initializer_list>

#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "netns/sys/selinux.h"

namespace railhead::nccl {
namespace {

// nccl.conf last: a process that finds it finds the other files, too.
constexpr std::initializer_list<const char*> kNames = {kTopologyName, kUcxConfName, kNcclConfName};

}  // namespace

std::string NcclConfigPath(const Root& root, const std::string& container, const std::string& name) {
  return paths::NcclConfigDirectory(root, container) + "/" + name;
}

std::string DeviceNcclConfigPath(const Root& root, const std::string& bdf) {
  return paths::DeviceNcclConfigDirectory(root, bdf) + "/nccl.conf";
}

Result<void> WriteNcclConfig(const Root& root, const std::string& container,
                             const std::vector<NcclConfigFile>& files) {
  // Before anything is removed there.
  RH_TRY(CheckStateFolder(root, paths::NcclConfigDirectory(root, container)));
  for (const char* name : kNames) {
    const std::string path = NcclConfigPath(root, container, name);
    const auto file = std::ranges::find(files, name, &NcclConfigFile::name);
    if (file == files.end()) {
      RH_TRY(RemoveWritten(path));
    } else {
      RH_TRY(WriteStateFile(root, path, file->text));
      RH_TRY(LabelForContainers(root, path));
    }
  }
  return {};
}

Result<void> RemoveNcclConfig(const Root& root, const std::string& container) {
  RH_TRY(CheckStateFolder(root, paths::NcclConfigDirectory(root, container)));
  for (const char* name : kNames) RH_TRY(RemoveWritten(NcclConfigPath(root, container, name)));
  (void)RemoveEmptyDirectory(paths::NcclConfigDirectory(root, container));
  return {};
}

Result<void> WriteDeviceNcclConfig(const Root& root, const std::string& bdf, const std::string& nccl_conf) {
  RH_TRY(MakeStateFolder(root, paths::DeviceNcclConfigDirectory(root, bdf)));
  (void)RemoveEmptyDirectory(DeviceNcclConfigPath(root, bdf));
  RH_TRY(WriteInPlace(DeviceNcclConfigPath(root, bdf), nccl_conf));
  return LabelForContainers(root, DeviceNcclConfigPath(root, bdf));
}

Result<void> ClearDeviceNcclConfig(const Root& root, const std::string& bdf) {
  RH_TRY(CheckStateFolder(root, paths::DeviceNcclConfigDirectory(root, bdf)));
  // A folder that a runtime made for a missing mount source.
  (void)RemoveEmptyDirectory(DeviceNcclConfigPath(root, bdf));
  if (!Exists(DeviceNcclConfigPath(root, bdf))) return {};
  return WriteInPlace(DeviceNcclConfigPath(root, bdf), "");
}

}  // namespace railhead::nccl
