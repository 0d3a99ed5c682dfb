#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "cni/attachment/devices.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/rdma_mode.h"
#include "cni/attachment/verify.h"
#include "cni/plugin/plugin.h"
#include "cni/protocol/cni_result.h"
#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

namespace railhead::attachment {
namespace {

// The runtime's prevResult must be what ADD returned.
Result<void> CheckPrevious(std::vector<std::string>& differences, const std::string& prev_result,
                           const JournalEntry& entry) {
  const CniResult previous = RH_TRY(ParseCniResult(prev_result, "prevResult"));
  for (const AttachedDevice& device : entry.devices) {
    for (const auto& address : device.addressing.addresses) {
      const bool known = Contains(previous.ips, address, &CniIp::address);
      if (!known) differences.push_back("prevResult does not have address " + address.ToString());
    }
  }
  return {};
}

}  // namespace

Result<void> RailheadPlugin::Check(const CniRequest& request) {
  RH_TRY(CheckStateFolders(root_));
  const PluginConfig config = RH_TRY(ReadPluginConfig(request));
  const AttachmentKey key{request.network, request.container_id, request.ifname};
  const auto entry = RH_TRY(journal_.Find(key));
  if (!entry || entry->phase != Phase::kDone) {
    // Chained behind the cluster network, for a pod without devices: ADD attached nothing.
    const CallPermissions may = RH_TRY(ReadPermissions(root_, request.network, request.args));
    const auto choice = ChooseDevices(root_, request, config, may);
    if (!entry && choice && choice->devices.empty()) return {};
    return Fail(ErrorCode::kNotFound, "CHECK: found no finished attachment " + key.ToString());
  }
  PodNetwork network = RH_TRY(PodNetwork::Open(kernel_, request));
  auto differences = RH_TRY(FindDifferences(root_, kernel_, network, *entry));
  if (!config.prev_result.empty()) RH_TRY(CheckPrevious(differences, config.prev_result, *entry));
  if (!differences.empty()) {
    return Fail(ErrorCode::kConflict, "CHECK of " + key.ToString() + ": " + Join(differences, "; "),
                "delete the pod; its successor gets a new attachment");
  }
  return IpamCheck(request, *entry);
}

namespace {

Result<void> CheckStateIsWritable(const Root& root) {
  const std::string path = paths::Lock(root, "status");
  RH_TRY(MakeStateFolderOf(root, path));
  RH_TRY(OpenOwnFile(path, O_WRONLY | O_CREAT));
  return {};
}

tl::unexpected<Error> Unavailable(Error error) {
  error.code = ErrorCode::kUnavailable;
  return Fail(std::move(error));
}

}  // namespace

// Fails only for what keeps every pod of the network from starting. containerd and CRI-O report the whole
// node as NetworkNotReady when STATUS of one network fails, and Kubernetes then evicts the node's pods. So
// rails and PFs are not checked, in whatever state they are: their devices are unhealthy for kubelet instead.
Result<void> RailheadPlugin::Status(const CniRequest& request) {
  const PluginConfig config = RH_TRY(ReadPluginConfig(request));
  if (const auto safe = CheckStateFolders(root_); !safe) return Unavailable(safe.error());
  const auto fabric = ReadFabric(root_, config.fabric_path);
  if (!fabric) return Unavailable(fabric.error());
  if (const auto written = CheckStateIsWritable(root_); !written) return Unavailable(written.error());
  std::optional<RdmaNetnsMode> demanded;
  if (*fabric && (*fabric)->rdma_exclusive) {
    demanded = *(*fabric)->rdma_exclusive ? RdmaNetnsMode::kExclusive : RdmaNetnsMode::kShared;
  }
  if (const auto mode = CheckRdmaMode(root_, kernel_, demanded); !mode) return Unavailable(mode.error());
  auto ipam = IpamForward(request, config, "STATUS");
  // For example, when it is not installed.
  if (!ipam && ipam.error().code != ErrorCode::kLimited) return Unavailable(std::move(ipam.error()));
  return ipam;
}

}  // namespace railhead::attachment
