#include "cni/nccl/nccl_config.h"

#include <sys/socket.h>

#include <algorithm>
#include <initializer_list>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"

namespace railhead {

std::optional<int> SharedValue(const std::vector<HandoffNic>& nics, std::optional<int> HandoffNic::*value) {
  if (nics.empty()) return std::nullopt;
  const auto first = nics.front().*value;
  const bool same =
      std::all_of(nics.begin(), nics.end(), [&](const HandoffNic& nic) { return nic.*value == first; });
  return same ? first : std::nullopt;
}

std::string FamilyName(const GidSearch& search) {
  return search.range.address.Family() == AF_INET ? "AF_INET" : "AF_INET6";
}

namespace {

// Who finds nccl.conf finds what it goes with, too.
constexpr std::initializer_list<const char*> kNames = {kTopologyName, kUcxConfName, kNcclConfName};

}  // namespace

bool IsHandoffName(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string HandoffPath(const Root& root, const std::string& container, const std::string& name) {
  return paths::HandoffDirectory(root, container) + "/" + name;
}

std::string DeviceHandoffPath(const Root& root, const std::string& bdf) {
  return paths::DeviceHandoffDirectory(root, bdf) + "/nccl.conf";
}

Result<void> WriteHandoff(const Root& root, const std::string& container,
                          const std::vector<HandoffFile>& files) {
  RH_TRY(MakeStateFolder(root, paths::HandoffDirectory(root, container)));
  for (const char* name : kNames) {
    const std::string path = HandoffPath(root, container, name);
    const auto file =
        std::find_if(files.begin(), files.end(), [&](const HandoffFile& one) { return one.name == name; });
    if (file == files.end()) {
      RH_TRY(RemoveWritten(path));
    } else {
      RH_TRY(WriteAtomic(path, file->text, Sync::kVolatile, 0644));
    }
  }
  return {};
}

Result<void> RemoveHandoff(const Root& root, const std::string& container) {
  RH_TRY(CheckStateFolder(root, paths::HandoffDirectory(root, container)));
  for (const char* name : kNames) RH_TRY(RemoveWritten(HandoffPath(root, container, name)));
  (void)RemoveEmptyDirectory(paths::HandoffDirectory(root, container));
  return {};
}

Result<void> WriteDeviceHandoff(const Root& root, const std::string& bdf, const std::string& nccl_conf) {
  RH_TRY(MakeStateFolder(root, paths::DeviceHandoffDirectory(root, bdf)));
  (void)RemoveEmptyDirectory(DeviceHandoffPath(root, bdf));
  return WriteInPlace(DeviceHandoffPath(root, bdf), nccl_conf);
}

Result<void> ClearDeviceHandoff(const Root& root, const std::string& bdf) {
  RH_TRY(CheckStateFolder(root, paths::DeviceHandoffDirectory(root, bdf)));
  // What a runtime made of a mount source that never came.
  (void)RemoveEmptyDirectory(DeviceHandoffPath(root, bdf));
  if (!Exists(DeviceHandoffPath(root, bdf))) return {};
  return WriteInPlace(DeviceHandoffPath(root, bdf), "");
}

}  // namespace railhead
