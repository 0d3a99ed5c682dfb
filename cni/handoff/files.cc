#include "cni/handoff/files.h"

#include "cni/state/paths.h"
#include "netns/base/files.h"

namespace railhead {

std::string HandoffPath(const Root& root, const std::string& container) {
  return paths::HandoffDirectory(root, container) + "/" + kNcclConfName;
}

std::string TopologyPath(const Root& root, const std::string& container) {
  return paths::HandoffDirectory(root, container) + "/" + kTopologyName;
}

std::string DeviceHandoffPath(const Root& root, const std::string& bdf) {
  return paths::DeviceHandoffDirectory(root, bdf) + "/nccl.conf";
}

Result<void> WriteHandoff(const Root& root, const std::string& container, const std::string& nccl_conf,
                          const std::optional<std::string>& topology) {
  RH_TRY(MakeDirectories(paths::HandoffDirectory(root, container)));
  if (topology) {
    RH_TRY(WriteAtomic(TopologyPath(root, container), *topology, Sync::kVolatile, 0644));
  } else {
    RH_TRY(RemoveWritten(TopologyPath(root, container)));
  }
  return WriteAtomic(HandoffPath(root, container), nccl_conf, Sync::kVolatile, 0644);
}

Result<void> RemoveHandoff(const Root& root, const std::string& container) {
  RH_TRY(RemoveWritten(HandoffPath(root, container)));
  RH_TRY(RemoveWritten(TopologyPath(root, container)));
  (void)RemoveEmptyDirectory(paths::HandoffDirectory(root, container));
  return {};
}

Result<void> WriteDeviceHandoff(const Root& root, const std::string& bdf, const std::string& nccl_conf) {
  RH_TRY(MakeDirectories(paths::DeviceHandoffDirectory(root, bdf)));
  (void)RemoveEmptyDirectory(DeviceHandoffPath(root, bdf));
  return WriteInPlace(DeviceHandoffPath(root, bdf), nccl_conf);
}

Result<void> ClearDeviceHandoff(const Root& root, const std::string& bdf) {
  // What a runtime made of a mount source that never came.
  (void)RemoveEmptyDirectory(DeviceHandoffPath(root, bdf));
  if (!Exists(DeviceHandoffPath(root, bdf))) return {};
  return WriteInPlace(DeviceHandoffPath(root, bdf), "");
}

}  // namespace railhead
