// Attachments that have ended.
#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/release.h"
#include "cni/attachment/reset.h"
#include "cni/attachment/return_names.h"
#include "cni/fabric/fabric.h"
#include "cni/fabric/network_policy.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/displaced_names.h"
#include "cni/state/kubelet_checkpoint.h"
#include "deviceplugin/services/reconcile/reconcile_pass.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/ns/mount_propagation.h"
#include "netns/ns/netns.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::reconcile {
namespace {

constexpr const char* kAttachment = "attachment";
constexpr int kPassesWithoutPod = 3;

bool HasUserSpaceDevice(const JournalEntry& entry) {
  for (const auto& link : entry.devices) {
    if (link.before.user_space) return true;
  }
  return false;
}

// Whether a namespace that cannot be opened may only be hidden from this process (in a container, say). If
// its directory is missing, a NIC in the namespace cannot be found, and the pass does not touch it. But a
// device of a user-space driver is visible in any case. Without mount propagation the file is visible, but
// not the namespace: ending the attachment would remove a live pod's VLAN through the PF.
Result<bool> MayBeHidden(const Root& root, const JournalEntry& entry) {
  const std::string directory = entry.netns.substr(0, entry.netns.rfind('/'));
  if (!Exists(directory)) return HasUserSpaceDevice(entry);
  return Exists(entry.netns) && !RH_TRY(SeesMountsOfHost(root, directory));
}

bool PodIsForgotten(const Root& root, const JournalEntry& entry) {
  const auto uid = entry.cni_args.find("K8S_POD_UID");
  return uid != entry.cni_args.end() && KubeletForgot(root, uid->second);
}

// Why an attachment must be ended; empty: it must not. `if_gone_for_long`: only if its pod has been gone for
// long enough, which the caller knows.
struct Verdict {
  std::string reason;
  bool if_gone_for_long = false;
};

Result<Verdict> Judge(const ReconcilePass& pass, const JournalEntry& entry) {
  if (entry.devices.empty()) return Verdict{"its IPAM plugin has not released its addresses"};
  const auto ns = RH_TRY(attachment::OpenPodOf(pass.kernel, entry));
  if (!ns && RH_TRY(MayBeHidden(pass.root, entry))) return Verdict{};
  // A running ADD holds the lock that the pass takes before it acts on this verdict.
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

// false: a process has its devices locked, another attachment replaced it, or it must not be ended now.
Result<bool> End(const ReconcilePass& pass, const JournalEntry& seen) {
  const auto locks = RH_TRY(TryLock(pass.root, DevicesOf(seen)));
  if (!locks) {
    pass.report.unfinished = true;
    return false;
  }
  const auto entry = RH_TRY(pass.journal.Find(seen.key));
  if (!entry || !Same(*entry, seen)) return false;
  if (RH_TRY(Judge(pass, *entry)).reason.empty()) return false;
  // Without a request of the runtime, IPAM plugins are where ADD found them.
  RH_TRY(attachment::ReleaseAttachment(pass.root, pass.kernel, pass.journal, CniRequest{}, *entry,
                                       {std::chrono::steady_clock::now() + pass.options.restore_timeout}));
  return true;
}

// The reboot has removed its kernel state. A file or an address may remain.
Result<bool> EndEarlier(const ReconcilePass& pass, const JournalEntry& seen) {
  const auto locks = RH_TRY(TryLock(pass.root, DevicesOf(seen)));
  if (!locks) {
    pass.report.unfinished = true;
    return false;
  }
  const auto entry = RH_TRY(pass.journal.FindOfAnyBoot(seen.key));
  if (!entry || entry->boot_id != seen.boot_id) return false;
  RH_TRY_WRAP(attachment::IpamRelease(CniRequest{}, *entry),
              "releasing the addresses of " + entry->key.ToString());
  RH_TRY(pass.journal.Remove(*entry));
  return true;
}

}  // namespace

void ReconcileAttachments(ReconcilePass& pass, const JournalScan& scan,
                          std::chrono::steady_clock::time_point now,
                          std::map<AttachmentKey, GonePod>& pods_gone) {
  std::map<AttachmentKey, GonePod> still_gone;
  for (const auto& entry : scan.entries) {
    if (pass.Stopped()) return;
    const auto verdict = Judge(pass, entry);
    if (!verdict) {
      pass.Add(kAttachment, entry.key.ToString(), "cannot be judged", Fail(verdict.error()));
      continue;
    }
    if (verdict->reason.empty()) continue;
    if (verdict->if_gone_for_long) {
      const auto before = pods_gone.find(entry.key);
      GonePod& pod = still_gone[entry.key] = before == pods_gone.end() ? GonePod{now} : before->second;
      if (++pod.passes < kPassesWithoutPod || now - pod.since < pass.options.pod_gone) continue;
    }
    pass.Add(kAttachment, entry.key.ToString(), verdict->reason, End(pass, entry));
  }
  pods_gone = std::move(still_gone);
  for (const auto& entry : scan.earlier) {
    if (pass.Stopped()) return;
    pass.Add(kAttachment, entry.key.ToString(), "is of an earlier boot", EndEarlier(pass, entry));
  }
}

// Devices that are on the host under a substitute name (cni/state/displaced_names.h).

void ReconcileNames(ReconcilePass& pass) {
  if (pass.Stopped()) return;
  const auto devices = ListDisplacedDevices(pass.root);
  if (!devices) return pass.Add("name", "", "cannot be listed", Fail(devices.error()));
  for (const std::string& device : *devices) {
    const auto give_back = [&]() -> Result<bool> {
      const auto locks = RH_TRY(TryLock(pass.root, {device}));
      if (!locks) return false;
      const NetNs host_ns = RH_TRY(pass.kernel.HostNetns());
      const auto host = RH_TRY(pass.kernel.OpenRoute(host_ns));
      return attachment::ReturnOwnNames(pass.root, *host, device);
    };
    pass.Add("name", device, "its own name is free again", give_back());
  }
  if (const auto left = ListDisplacedDevices(pass.root); left) pass.report.displaced = left->size();
}

// Soft RoCE devices of a VF that is back on the host.
//
// ADD names them after the VF ("rxe_pf0v3", cni/attachment/attach_plan.cc). A device with another name, or
// one that was made on the host itself, is not Railhead's.

namespace {

constexpr std::string_view kPrefix = "rxe_";

struct Candidate {
  std::string name;
  std::string device;  // BDF of the VF
  std::string netdev;  // its name on the host
};

bool IsOfEntry(const JournalScan& scan, const std::string& name) {
  return std::ranges::any_of(scan.entries, [&](const JournalEntry& entry) {
    return std::ranges::any_of(entry.devices, [&](const auto& device) { return device.rdma.device == name; });
  });
}

// The VF in the name, if it is on the host and the device belongs to it.
Result<std::optional<Candidate>> CandidateOf(const Root& root, const std::string& name) {
  const auto split = name.rfind('v');
  if (!name.starts_with(kPrefix) || split == std::string::npos || split <= kPrefix.size())
    return std::nullopt;
  const auto number = ParseInt(name.substr(split + 1));
  const auto pf = RH_TRY(PciAddressOfNetdev(root, name.substr(kPrefix.size(), split - kPrefix.size())));
  if (!pf || !number || *number < 0) return std::nullopt;
  const auto vfs = RH_TRY(VfsOf(root, *pf));
  if (static_cast<std::size_t>(*number) >= vfs.size()) return std::nullopt;
  const PciAddress& vf = vfs[static_cast<std::size_t>(*number)];
  const auto parent = RH_TRY(RxeParentOf(root, name));
  const auto netdevs = RH_TRY(NetdevsOf(root, vf));
  if (!parent || !Contains(netdevs, *parent)) return std::nullopt;
  return Candidate{name, vf.ToString(), *parent};
}

Result<bool> Remove(const ReconcilePass& pass, const Candidate& candidate) {
  const auto locks = RH_TRY(TryLock(pass.root, {candidate.device}));
  if (!locks || RH_TRY(pass.journal.HoldsDevice(candidate.device))) return false;
  const NetNs host = RH_TRY(pass.kernel.HostNetns());
  const auto rdma = RH_TRY(pass.kernel.OpenRdma(host));
  // sysfs names the parent as its own namespace does; netlink shows only the host's.
  const auto devices = RH_TRY(rdma->ListDevices());
  const bool on_host = std::ranges::any_of(devices, [&](const RdmaDevice& device) {
    return device.name == candidate.name && device.netdev_index != 0 && device.netdev == candidate.netdev;
  });
  return on_host ? RH_TRY(rdma->DeleteRxe(candidate.name)) : false;
}

}  // namespace

void ReconcileSoftRoce(ReconcilePass& pass, const JournalScan& scan) {
  const auto names = ListRdmaDevices(pass.root);
  if (!names) return pass.Add("soft-roce", "", "cannot be listed", Fail(names.error()));
  for (const auto& name : *names) {
    if (pass.Stopped()) return;
    if (!name.starts_with(kPrefix) || IsOfEntry(scan, name)) continue;
    const auto candidate = CandidateOf(pass.root, name);
    if (!candidate) {
      pass.Add("soft-roce", name, "cannot be judged", Fail(candidate.error()));
    } else if (*candidate) {
      pass.Add("soft-roce", name, "its VF is on the host and no attachment has it",
               Remove(pass, **candidate));
    }
  }
}

// Devices that wait for their next pod. They are reset now, so that an ADD of another tenant need not do it.
//
// A device must be idle for a while, and in two passes. So a pod that restarts at once gets its devices as
// they are, and none of them is in a reset. Devices that kubelet has allocated are not idle: their ADD may be
// about to come. If an ADD still meets a reset, it waits for the device's lock.

namespace {

// Other steps of the pass wait for these resets, but no pod does.
constexpr std::chrono::seconds kLongestShare{5};

// Devices that an attachment holds or that kubelet has allocated.
Result<std::set<std::string>> DevicesInUse(const Root& root, const JournalScan& scan) {
  std::set<std::string> devices = scan.orphaned;
  for (const auto* entries : {&scan.entries, &scan.earlier})
    for (const JournalEntry& entry : *entries) devices.merge(DevicesOf(entry));
  for (const UnreadableEntry& entry : scan.unreadable)
    devices.insert(entry.devices.begin(), entry.devices.end());
  for (const ContainerDevices& container : RH_TRY(ReadCheckpoint(root)))
    devices.insert(container.ids.begin(), container.ids.end());
  return devices;
}

// Without a readable policy it is unknown whether devices may be reset. ADD reports that.
bool MayReset(const Root& root) {
  const auto fabric = ReadFabric(root);
  return fabric && (!*fabric || (*fabric)->policy.reset != ResetPolicy::kNever);
}

// false: the device is in use or locked now, or cannot be reset.
Result<bool> Reset(const ReconcilePass& pass, const std::string& device, IdleDevice* idle) {
  const auto locks = RH_TRY(TryLock(pass.root, {device}));
  if (!locks || RH_TRY(pass.journal.HoldsDevice(device))) return false;
  if (RH_TRY(ReadTenant(pass.root, device)) != idle->last) return false;
  const attachment::ResetOutcome outcome = RH_TRY(attachment::ResetDevice(
      pass.root, pass.kernel, pass.journal, device, Describe(idle->last) + " had it before"));
  idle->cannot_be_reset = !outcome.impossible.empty();
  return !idle->cannot_be_reset;
}

}  // namespace

void ReconcileTenants(ReconcilePass& pass, const JournalScan& scan, std::chrono::steady_clock::time_point now,
                      std::map<std::string, IdleDevice>& idle) {
  if (pass.Stopped() || !pass.options.repeated) return;
  const auto before = std::exchange(idle, {});
  const auto devices = ListTenantDevices(pass.root);
  if (!devices) return pass.Add("reset", "", "devices cannot be listed", Fail(devices.error()));
  if (devices->empty() || !MayReset(pass.root)) return;
  const auto in_use = DevicesInUse(pass.root, scan);
  if (!in_use) return pass.Add("reset", "", "kubelet's checkpoint cannot be read", Fail(in_use.error()));
  const auto until = std::chrono::steady_clock::now() + kLongestShare;
  for (const std::string& device : *devices) {
    if (in_use->contains(device)) continue;
    const auto last = ReadTenant(pass.root, device);
    if (!last || !*last) continue;  // an ADD replaces an unreadable record
    IdleDevice& one = idle[device] = {**last, now, false};
    const auto known = before.find(device);
    if (known == before.end() || known->second.last != one.last) continue;
    one = known->second;
    if (one.cannot_be_reset || now - one.since < pass.options.idle) continue;
    if (pass.Stopped() || std::chrono::steady_clock::now() >= until) continue;
    pass.Add("reset", device, Describe(one.last) + " had it", Reset(pass, device, &one));
  }
}

}  // namespace railhead::reconcile
