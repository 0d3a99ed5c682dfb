#include "cni/plugin/handoff_step.h"
#include "cni/plugin/home.h"
#include "cni/plugin/ipam_step.h"
#include "cni/plugin/locks.h"
#include "cni/plugin/plugin.h"

namespace railhead {

// The device first, then its address: an address must not go to another pod while
// the device still has it.
Result<void> RailheadPlugin::Del(const CniRequest& request) {
  const PluginConfig config = RH_TRY(ReadPluginConfig(request));
  const AttachmentKey key{request.network, request.container_id, request.ifname};
  auto entry = RH_TRY(journal_.Find(key));
  std::vector<FileLock> locks;
  if (entry) {
    for (const auto& link : entry->links) locks.push_back(RH_TRY(LockDevice(root_, link.device)));
    // Another DEL may have finished while this one waited.
    entry = RH_TRY(journal_.Find(key));
  }
  if (entry) {
    RH_TRY(BringHome(root_, kernel_, *entry, request.netns, HomeDeadline()));
    RH_TRY(RemoveHandoffOf(root_, journal_, *entry));
  }
  RH_TRY(IpamDelUnknown(request, config));
  // Last: while there is an entry, a DEL that failed or was killed comes again.
  if (entry) RH_TRY(journal_.Remove(*entry));
  return {};
}

}  // namespace railhead
