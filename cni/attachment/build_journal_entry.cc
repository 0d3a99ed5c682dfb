#include "cni/attachment/build_journal_entry.h"

#include <cstdint>
#include <ctime>

#include "cni/attachment/rdma_mode.h"
#include "netns/base/node.h"

namespace railhead::attachment {
Result<JournalEntry> BuildJournalEntry(const Root& root, Kernel& kernel, const PodNetwork& network,
                                       const CniRequest& request, AttachPlan& plan) {
  JournalEntry entry;
  entry.key = {request.network, request.container_id, request.ifname};
  entry.boot_id = RH_TRY(BootId(root));
  entry.netns = request.netns;
  entry.netns_inode = network.pod_ns.inode();
  entry.since = static_cast<std::int64_t>(std::time(nullptr));
  entry.ipam_type = plan.ipam_type;
  for (const IpamRun& run : plan.ipam_runs) entry.ipam_calls.push_back(run.call);
  entry.cni_path = request.path;
  entry.cni_args = request.args;
  entry.device_info_file = plan.config.runtime.device_info_file.value_or("");
  for (DevicePlan& device : plan.devices) {
    RH_TRY(AgreeOnRdma(root, kernel, plan, device));
    entry.devices.push_back(device.record);
    entry.nccl_config_required = entry.nccl_config_required || device.nccl_config_required;
  }
  return entry;
}

}  // namespace railhead::attachment
