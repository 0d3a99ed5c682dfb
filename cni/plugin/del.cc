#include <algorithm>
#include <chrono>

#include "cni/attachment/device_locks.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/release.h"
#include "cni/plugin/plugin.h"
#include "netns/base/state_folder.h"

namespace railhead {
namespace {

Error WithHolder(Error error, const JournalEntry& entry) {
  if (error.code != ErrorCode::kTimeout || !error.hint.empty()) return error;
  error.hint = "another call holds it";
  if (entry.phase != Phase::kDone && !entry.ipam_type.empty())
    error.hint +=
        ", or the IPAM plugin " + entry.ipam_type + " of a killed ADD, which is still running: end that";
  return error;
}

std::chrono::milliseconds TimeUntil(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

}  // namespace

// Through the entry of its own network, container and interface only: a DEL that
// comes late does not touch the device of the next pod.
Result<bool> RailheadPlugin::Release(const CniRequest& request, const AttachmentKey& key,
                                     std::optional<Deadline> until) {
  for (bool found = false;; found = true) {
    auto entry = RH_TRY(journal_.Find(key));
    if (!entry) return found;
    const auto devices = DevicesOf(*entry);
    // A killed ADD can leave its IPAM plugin running, which holds these too.
    const auto locks = DeviceLocks::Acquire(root_, devices, until ? TimeUntil(*until) : kLockLimit);
    if (!locks) return Fail(WithHolder(locks.error(), *entry));
    entry = RH_TRY(journal_.Find(key));
    if (!entry) return true;  // another DEL has finished while this one waited
    if (DevicesOf(*entry) != devices) continue;
    RH_TRY(ReleaseAttachment(root_, kernel_, journal_, request, *entry, {until.value_or(HomeDeadline())}));
    return true;
  }
}

Result<void> RailheadPlugin::Del(const CniRequest& request) {
  RH_TRY(CheckStateFolders(root_));
  const AttachmentKey key{request.network, request.container_id, request.ifname};
  if (RH_TRY(Release(request, key))) return {};
  RH_TRY(journal_.RemoveHalf(key));
  // Nothing was attached in this boot, but the address store outlives boots. ADD
  // refuses a broken configuration before it asks for an address; to refuse it here as
  // well would keep the sandbox from being removed.
  const auto config = ReadPluginConfig(request);
  return config ? IpamDelUnknown(root_, request, *config) : Result<void>();
}

}  // namespace railhead
