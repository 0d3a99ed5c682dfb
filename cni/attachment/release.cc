#include "cni/attachment/release.h"

#include "cni/attachment/host_names.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/nccl_step.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/restore.h"
#include "cni/state/attach_log.h"
#include "cni/state/displaced_names.h"

namespace railhead {
namespace {

// An ADD that was killed while it wrote its journal holds only some of its devices.
// The others were not touched, and may be another pod's by now. A finished one has touched
// all: a device that nobody holds is still its own, and only the link got lost.
Result<JournalEntry> WithHeldLinksOnly(const Journal& journal, const JournalEntry& entry) {
  JournalEntry held = entry;
  held.links.clear();
  for (const auto& link : entry.links) {
    const bool own = RH_TRY(journal.LinksTo(link.device, entry.key));
    const bool lost =
        !own && entry.phase == Phase::kDone && !RH_TRY(journal.FindByDevice(link.device)).has_value();
    if (own || lost) held.links.push_back(link);
  }
  return held;
}

// Before a driver is bound anew, the entry on record is reduced to the held links.
Result<void> ReturnDevices(const Root& root, Kernel& kernel, const Journal& journal,
                           const CniRequest& request, const JournalEntry& entry,
                           const ReleaseOptions& options) {
  const auto before_rebind = [&, marked = entry](const std::string& device, const std::string& why) mutable {
    for (AttachedLink& link : marked.links) {
      if (link.device == device) link.rebound_for = why;
    }
    LogRebind(root, entry.key, device, why);
    return journal.Write(marked);
  };
  if (options.pod_ns != nullptr && options.pod_ns->inode() == entry.netns_inode)
    return BringHome(root, kernel, entry, options.pod_ns, options.deadline, before_rebind);
  const bool own = entry.key == AttachmentKey{request.network, request.container_id, request.ifname};
  const auto pod_ns = RH_TRY(OpenPodOf(kernel, entry, own ? request.netns : ""));
  return BringHome(root, kernel, entry, pod_ns ? &*pod_ns : nullptr, options.deadline, before_rebind);
}

// The devices that are back may have had names of others.
Result<void> ReturnNames(const Root& root, Kernel& kernel, const JournalEntry& entry) {
  if (RH_TRY(ListDisplacedDevices(root)).empty()) return {};
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  ReturnFreeNames(root, *host, DevicesOf(entry));
  return {};
}

}  // namespace

std::set<std::string> DevicesOf(const JournalEntry& entry) {
  std::set<std::string> devices;
  for (const auto& link : entry.links) {
    devices.insert(link.device);
    devices.insert(link.KubeletId());
  }
  return devices;
}

Result<void> ReleaseAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                               const CniRequest& request, const JournalEntry& entry,
                               const ReleaseOptions& options) {
  const JournalEntry held = RH_TRY(WithHeldLinksOnly(journal, entry));
  RH_TRY(ReturnDevices(root, kernel, journal, request, held, options));
  RH_TRY(ReturnNames(root, kernel, held));
  RH_TRY(RemoveHandoffOf(root, journal, held));
  const auto released = IpamRelease(request, entry);
  if (released) return journal.Remove(entry);
  // A network's author chooses the IPAM plugin and its words: they must not hold a device.
  if (!entry.links.empty()) RH_TRY(journal.FreeDevices(entry));
  return WithContext(released, "releasing the addresses of " + entry.key.ToString());
}

}  // namespace railhead
