#include <algorithm>

#include "cni/attachment/devices.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/verify.h"
#include "cni/plugin/plugin.h"
#include "cni/protocol/cni_result.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

// What the runtime remembers must be what ADD answered.
Result<void> CheckPrevious(std::vector<std::string>& differences, const std::string& prev_result,
                           const JournalEntry& entry) {
  const CniResult previous = RH_TRY(ParseCniResult(prev_result, "prevResult"));
  for (const auto& link : entry.links) {
    for (const auto& address : link.addresses) {
      const bool known = std::any_of(previous.ips.begin(), previous.ips.end(),
                                     [&](const CniIp& ip) { return ip.address == address; });
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
    // Chained behind the cluster network for a pod without devices: nothing was promised.
    const CallPermissions may = RH_TRY(ReadPermissions(root_, request.network, request.args));
    const auto choice = ChooseDevices(root_, request, config, may);
    if (!entry && choice && choice->devices.empty()) return {};
    return Fail(ErrorCode::kNotFound, "CHECK: there is no finished attachment " + key.ToString());
  }
  PodNetwork network = RH_TRY(PodNetwork::Open(kernel_, request));
  auto differences = RH_TRY(FindDifferences(root_, kernel_, network, *entry));
  if (!config.prev_result.empty()) RH_TRY(CheckPrevious(differences, config.prev_result, *entry));
  if (!differences.empty()) {
    return Fail(ErrorCode::kConflict, "CHECK of " + key.ToString() + ": " + Join(differences, "; "),
                "delete the pod to attach anew");
  }
  return IpamCheck(request, *entry);
}

}  // namespace railhead
