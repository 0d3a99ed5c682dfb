// Soft RoCE devices of a VF that is back on the host.
//
// ADD names them after the VF ("rxe_pf0v3", cni/attachment/attach_plan.cc). One that was made on
// the host itself, or has another name, is someone else's.
#include <algorithm>
#include <string_view>

#include "deviceplugin/services/reconcile/pass.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead {
namespace {

constexpr std::string_view kPrefix = "rxe_";

struct Candidate {
  std::string name;
  std::string device;  // BDF of the VF
  std::string netdev;  // its name on the host
};

bool IsOfEntry(const JournalScan& scan, const std::string& name) {
  return std::any_of(scan.entries.begin(), scan.entries.end(), [&](const JournalEntry& entry) {
    return std::any_of(entry.links.begin(), entry.links.end(),
                       [&](const AttachedLink& link) { return link.rdma_device == name; });
  });
}

// The VF that the name says, if it is on the host and the device hangs on it.
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
  if (!parent || std::find(netdevs.begin(), netdevs.end(), *parent) == netdevs.end()) return std::nullopt;
  return Candidate{name, vf.ToString(), *parent};
}

Result<bool> Remove(const ReconcilePass& pass, const Candidate& candidate) {
  const auto locks = RH_TRY(TryLock(pass.root, {candidate.device}));
  if (!locks || RH_TRY(pass.journal.HoldsDevice(candidate.device))) return false;
  const NetNs host = RH_TRY(pass.kernel.HostNetns());
  const auto rdma = RH_TRY(pass.kernel.OpenRdma(host));
  // sysfs names the parent as its own namespace does; netlink shows only the host's.
  const auto devices = RH_TRY(rdma->ListDevices());
  const bool on_host = std::any_of(devices.begin(), devices.end(), [&](const RdmaDevice& device) {
    return device.name == candidate.name && device.netdev_index != 0 && device.netdev == candidate.netdev;
  });
  return on_host ? RH_TRY(rdma->DeleteRxe(candidate.name)) : false;
}

}  // namespace

void ReconcileSoftRoce(ReconcilePass& pass, const JournalScan& scan) {
  const auto names = ListRdmaDevices(pass.root);
  if (!names) return pass.Add("soft-roce", "", "cannot be listed", Fail(names.error()));
  for (const auto& name : *names) {
    if (pass.stopped) return;
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

}  // namespace railhead
