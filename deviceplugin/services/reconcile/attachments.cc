// Attachments that are over.
#include <utility>

#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/release.h"
#include "cni/attachment/reset.h"
#include "cni/protocol/plugin.h"
#include "cni/state/checkpoint.h"
#include "deviceplugin/services/reconcile/pass.h"
#include "netns/base/files.h"
#include "netns/ns/propagation.h"

namespace railhead {
namespace {

constexpr const char* kAttachment = "attachment";

bool HasUserSpaceDevice(const JournalEntry& entry) {
  for (const auto& link : entry.links) {
    if (link.user_space) return true;
  }
  return false;
}

// Whether a namespace that cannot be opened may only be hidden from this process (in a container, say).
// Without the directory where it was, a NIC in it would not be found and nothing happen to it; but a device
// of a user-space driver is here whatever became of its pod. Without mount propagation the file shows, and
// not the namespace: the VLAN of a pod that lives would be taken away through the PF.
Result<bool> MayBeHidden(const Root& root, const JournalEntry& entry) {
  const std::string directory = entry.netns.substr(0, entry.netns.rfind('/'));
  if (!Exists(directory)) return HasUserSpaceDevice(entry);
  return Exists(entry.netns) && !RH_TRY(SeesMountsOfHost(root, directory));
}

bool PodIsForgotten(const Root& root, const JournalEntry& entry) {
  const auto uid = entry.cni_args.find("K8S_POD_UID");
  return uid != entry.cni_args.end() && KubeletForgot(root, uid->second);
}

// Why an attachment has to be ended; empty: it has not. For a pod that is gone: if it
// has been for long enough, which only the caller knows.
struct Verdict {
  std::string reason;
  bool if_gone_for_long = false;
};

Result<Verdict> Judge(const ReconcilePass& pass, const JournalEntry& entry) {
  if (entry.links.empty()) return Verdict{"its IPAM plugin has not released its addresses"};
  const auto ns = RH_TRY(OpenPodOf(pass.kernel, entry));
  if (!ns && RH_TRY(MayBeHidden(pass.root, entry))) return Verdict{};
  // While it runs, an ADD holds the lock that we get before this counts.
  if (IsReset(entry)) return Verdict{"its reset was interrupted"};
  if (entry.phase == Phase::kPlanned) return Verdict{"its ADD was killed or could not be undone"};
  if (!ns) return Verdict{"its network namespace is gone"};
  if (!pass.options.repeated || !PodIsForgotten(pass.root, entry)) return Verdict{};
  if (RH_TRY(pass.kernel.HasProcesses(*ns))) return Verdict{};
  return Verdict{"its pod is gone", true};
}

bool Same(const JournalEntry& a, const JournalEntry& b) {
  return a.boot_id == b.boot_id && a.since == b.since && a.netns_inode == b.netns_inode &&
         DevicesOf(a) == DevicesOf(b);
}

// false: it is someone else's now, or not over any more.
Result<bool> End(const ReconcilePass& pass, const JournalEntry& seen) {
  const auto locks = RH_TRY(TryLock(pass.root, DevicesOf(seen)));
  if (!locks) return false;
  const auto entry = RH_TRY(pass.journal.Find(seen.key));
  if (!entry || !Same(*entry, seen)) return false;
  if (RH_TRY(Judge(pass, *entry)).reason.empty()) return false;
  // Nobody's request: IPAM plugins are where ADD found them.
  RH_TRY(ReleaseAttachment(pass.root, pass.kernel, pass.journal, CniRequest{}, *entry,
                           {std::chrono::steady_clock::now() + pass.options.home_limit}));
  return true;
}

// The kernel has forgotten it with the boot; a file or an address may be left.
Result<bool> EndEarlier(const ReconcilePass& pass, const JournalEntry& seen) {
  const auto locks = RH_TRY(TryLock(pass.root, DevicesOf(seen)));
  if (!locks) return false;
  const auto entry = RH_TRY(pass.journal.FindOfAnyBoot(seen.key));
  if (!entry || entry->boot_id != seen.boot_id) return false;
  RH_TRY_WRAP(IpamRelease(CniRequest{}, *entry), "releasing the addresses of " + entry->key.ToString());
  RH_TRY(pass.journal.Remove(*entry));
  return true;
}

}  // namespace

void ReconcileAttachments(ReconcilePass& pass, const JournalScan& scan, Reconciler::Clock::time_point now,
                          std::map<AttachmentKey, Reconciler::Clock::time_point>& pods_gone) {
  std::map<AttachmentKey, Reconciler::Clock::time_point> still_gone;
  for (const auto& entry : scan.entries) {
    if (pass.stopped) return;
    const auto verdict = Judge(pass, entry);
    if (!verdict) {
      pass.Add(kAttachment, entry.key.ToString(), "cannot be judged", Fail(verdict.error()));
      continue;
    }
    if (verdict->reason.empty()) continue;
    if (verdict->if_gone_for_long) {
      const auto since = pods_gone.find(entry.key);
      still_gone[entry.key] = since == pods_gone.end() ? now : since->second;
      if (now - still_gone[entry.key] < pass.options.pod_gone) continue;
    }
    pass.Add(kAttachment, entry.key.ToString(), verdict->reason, End(pass, entry));
  }
  pods_gone = std::move(still_gone);
  for (const auto& entry : scan.earlier) {
    if (pass.stopped) return;
    pass.Add(kAttachment, entry.key.ToString(), "is of an earlier boot", EndEarlier(pass, entry));
  }
}

}  // namespace railhead
