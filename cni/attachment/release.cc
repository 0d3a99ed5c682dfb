#include "cni/attachment/release.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cni/attachment/device_info.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/nccl_step.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/restore.h"
#include "cni/attachment/return_names.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/attach_log.h"
#include "cni/state/displaced_names.h"
#include "cni/state/journal.h"
#include "cni/state/tenants.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {
namespace {

// An ADD that was killed while it wrote its journal holds only some of its devices. It did not change the
// others, which another pod may have now. A finished ADD changed all of them: a device that no entry holds is
// still its own, and only the lock file lost its content.
Result<JournalEntry> WithHeldDevicesOnly(const Journal& journal, const JournalEntry& entry) {
  JournalEntry held = entry;
  held.devices.clear();
  for (const AttachedDevice& device : entry.devices) {
    const bool own = RH_TRY(journal.IsHeldBy(device.device, entry.key));
    const bool lost =
        !own && entry.phase == Phase::kDone && !RH_TRY(journal.FindByDevice(device.device)).has_value();
    if (own || lost) held.devices.push_back(device);
  }
  return held;
}

// Before a driver is bound again, this writes the entry with only the held devices.
Result<void> ReturnDevices(const Root& root, Kernel& kernel, const Journal& journal,
                           const CniRequest& request, const JournalEntry& entry,
                           const ReleaseOptions& options) {
  const auto before_rebind = [&, marked = entry](const std::string& device, const std::string& why) mutable {
    for (AttachedDevice& one : marked.devices) {
      if (one.device == device) one.rebound_for = why;
    }
    LogRebind(root, entry.key, device, why);
    return journal.Write(marked);
  };
  if (options.pod_ns != nullptr && options.pod_ns->inode() == entry.netns_inode)
    return RestoreToHost(root, kernel, entry, options.pod_ns, options.deadline, before_rebind);
  const bool own = entry.key == AttachmentKey{request.network, request.container_id, request.ifname};
  const auto pod_ns = RH_TRY(OpenPodOf(kernel, entry, own ? request.netns : ""));
  return RestoreToHost(root, kernel, entry, pod_ns ? &*pod_ns : nullptr, options.deadline, before_rebind);
}

// The restored devices may have had names of other devices.
Result<void> ReturnNames(const Root& root, Kernel& kernel, const JournalEntry& entry) {
  if (RH_TRY(ListDisplacedDevices(root)).empty()) return {};
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  ReturnFreeNames(root, *host, DevicesOf(entry));
  return {};
}

}  // namespace

Result<void> ReleaseAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                               const CniRequest& request, const JournalEntry& entry,
                               const ReleaseOptions& options) {
  const JournalEntry held = RH_TRY(WithHeldDevicesOnly(journal, entry));
  RH_TRY(ReturnDevices(root, kernel, journal, request, held, options));
  RH_TRY(ReturnNames(root, kernel, held));
  RH_TRY(RemoveNcclConfigOf(root, journal, held));
  RH_TRY_WRAP(RemoveDeviceInfoFile(root, held), "removing the device-info file");
  const auto released = IpamRelease(request, entry);
  if (released) return journal.Remove(entry);
  // The author of a network chooses the IPAM plugin and its configuration. If the plugin fails, it must not
  // keep a device.
  if (!entry.devices.empty()) RH_TRY(journal.FreeDevices(entry));
  return WithContext(released, "releasing the addresses of " + entry.key.ToString());
}

}  // namespace railhead::attachment
