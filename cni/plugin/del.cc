#include "cni/plugin/handoff_step.h"
#include "cni/plugin/home.h"
#include "cni/plugin/ipam_step.h"
#include "cni/plugin/locks.h"
#include "cni/plugin/plugin.h"

namespace railhead {
namespace {

// By the plugin that gave it, as the journal says; without an entry by the one
// that the configuration names.
Result<void> ReleaseAddress(const CniRequest& request, const std::optional<JournalEntry>& entry,
                            const Result<PluginConfig>& config) {
  if (entry) {
    if (entry->ipam_type.empty()) return {};
    return IpamDel(request, entry->ipam_type, entry->links.empty() ? "" : entry->links.front().rail);
  }
  // ADD refuses such a configuration before it asks for an address. To refuse it
  // here as well would keep the sandbox from being removed.
  return config ? IpamDelUnknown(request, *config) : Result<void>();
}

}  // namespace

// The device first, then its address: an address must not go to another pod while
// the device still has it.
Result<void> RailheadPlugin::Del(const CniRequest& request) {
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
  RH_TRY(ReleaseAddress(request, entry, ReadPluginConfig(request)));
  // Last: while there is an entry, a DEL that failed or was killed comes again.
  if (entry) RH_TRY(journal_.Remove(*entry));
  return {};
}

}  // namespace railhead
