#include "cni/state/handoff.h"

#include <algorithm>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::size_t kMaxValue = 1022;

}  // namespace

Result<std::string> NcclConf(const Handoff& handoff) {
  std::vector<std::pair<std::string, std::string>> lines;
  if (!handoff.nics.empty()) {
    std::vector<std::string> names;
    const HandoffNic& first = handoff.nics.front();
    bool same_class = true;
    for (const auto& nic : handoff.nics) {
      names.push_back(nic.rdma_device);
      same_class = same_class && nic.traffic_class == first.traffic_class;
      if (nic.gid_index == first.gid_index) continue;
      return Fail(ErrorCode::kConflict,
                  "the pod's NICs have different GID indices: " + first.rdma_device + " " +
                      std::to_string(first.gid_index) + ", " + nic.rdma_device + " " +
                      std::to_string(nic.gid_index),
                  "NCCL takes one index for all HCAs: look for further addresses on one of the NICs, or for "
                  "devices of different RoCE capabilities in one pool");
    }
    lines.emplace_back("NCCL_IB_HCA", "=" + Join(names, ","));
    lines.emplace_back("NCCL_IB_GID_INDEX", std::to_string(first.gid_index));
    if (same_class && first.traffic_class)
      lines.emplace_back("NCCL_IB_TC", std::to_string(*first.traffic_class));
  }
  if (!handoff.socket_ifname.empty()) lines.emplace_back("NCCL_SOCKET_IFNAME", "=" + handoff.socket_ifname);
  lines.insert(lines.end(), handoff.env.begin(), handoff.env.end());
  std::string text;
  for (const auto& [name, value] : lines) {
    if (value.size() > kMaxValue) {
      return Fail(ErrorCode::kInvalid,
                  name + " is longer than NCCL reads (" + std::to_string(kMaxValue) + " bytes)");
    }
    text.append(name).append("=").append(value).append("\n");
  }
  return text;
}

std::string HandoffPath(const Root& root, const std::string& container) {
  return paths::HandoffDirectory(root, container) + "/nccl.conf";
}

std::string DeviceHandoffPath(const Root& root, const std::string& bdf) {
  return paths::DeviceHandoffDirectory(root, bdf) + "/nccl.conf";
}

Result<void> WriteHandoff(const Root& root, const std::string& container, const std::string& nccl_conf) {
  RH_TRY(MakeDirectories(paths::HandoffDirectory(root, container)));
  return WriteAtomic(HandoffPath(root, container), nccl_conf, Sync::kVolatile, 0644);
}

Result<void> RemoveHandoff(const Root& root, const std::string& container) {
  RH_TRY(RemoveWritten(HandoffPath(root, container)));
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
