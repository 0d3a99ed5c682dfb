#include "cni/attachment/recover.h"

#include <optional>
#include <utility>

#include "cni/attachment/device_locks.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/nccl_step.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/restore.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/attach_log.h"
#include "cni/state/tenants.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::attachment {
namespace {

class Recoverer {
 public:
  Recoverer(const Root& root, Kernel& kernel, const Journal& journal, const UnreadableEntry& file)
      : root_(root), kernel_(kernel), journal_(journal), file_(file) {}

  Result<Recovery> Run(bool force) {
    const auto text = RH_TRY(ReadFile(file_.path));
    if (!text) return Recovery{.ended = true};  // another process removed it
    const RecoveredEntry recovered = RecoverJournalEntry(*text, file_);
    result_.lost = recovered.lost;
    const auto pod = RH_TRY(OpenPod(recovered.entry, force));
    RestoreDevices(recovered.entry, pod ? &*pod : nullptr);
    if (force) {
      for (const std::string& device : recovered.unreadable) Reset(device);
    }
    Try("its CDI specs and NCCL files", RemoveNcclConfigOf(root_, journal_, WithAllDevices(recovered)));
    Try("its addresses", IpamRelease(CniRequest{}, recovered.entry));
    if (!result_.lost.empty() && !force) return std::move(result_);
    RH_TRY(journal_.RemoveUnreadable(file_));
    result_.ended = true;
    return std::move(result_);
  }

 private:
  // If the entry does not name the namespace, the pod may still run.
  Result<std::optional<NetNs>> OpenPod(const JournalEntry& entry, bool force) {
    auto pod = RH_TRY(OpenPodOf(kernel_, entry));
    const bool may_live = entry.netns_inode == 0 || (pod && RH_TRY(kernel_.HasProcesses(*pod)));
    if (may_live && !force) {
      return Fail(ErrorCode::kBusy,
                  "the pod of " + file_.key.ToString() +
                      (entry.netns_inode == 0 ? " may still be running: the entry does not say where it is"
                                              : " is still running in " + entry.netns),
                  "delete the pod first, or use --force to remove its NICs while it runs");
    }
    return pod;
  }

  void RestoreDevices(const JournalEntry& entry, const NetNs* pod) {
    for (const AttachedDevice& attached : entry.devices) {
      JournalEntry one = entry;
      one.devices = {attached};
      const auto log_rebind = [&](const std::string& device, const std::string& why) -> Result<void> {
        LogRebind(root_, entry.key, device, why);
        return {};
      };
      (void)MarkLeftover(root_, attached.device, "its journal entry could not be read");
      if (Try("device " + attached.device,
              RestoreToHost(root_, kernel_, one, pod, RestoreDeadline(), log_rebind)))
        result_.restored.push_back(attached.device);
    }
  }

  void Reset(const std::string& device) {
    const auto address = PciAddress::Parse(device);
    if (!address) return;  // it is a slot
    const auto reset = [&]() -> Result<void> {
      const auto function = RH_TRY(FindPciDevice(root_, *address));
      if (!function) return {};  // removed, with its settings
      if (function->driver) RH_TRY(kernel_.RebindDriver(device));
      return function->physfn && function->vf_index ? ResetVf(*function->physfn, *function->vf_index)
                                                    : Result<void>();
    };
    if (Try("device " + device, reset())) result_.reset.push_back(device);
  }

  // One setting per call: a setting that the driver does not support was not set before, either.
  Result<void> ResetVf(const PciAddress& pf, int vf) {
    const NetNs host_ns = RH_TRY(kernel_.HostNetns());
    const auto host = RH_TRY(kernel_.OpenRoute(host_ns));
    const auto name = RH_TRY(UplinkNetdev(root_, pf));
    const auto link = name ? RH_TRY(host->FindLink(*name)) : std::nullopt;
    if (!link) return Fail(ErrorCode::kNotFound, "its PF " + pf.ToString() + " is not on the host");
    const VfSettings vlan{.vlan = VfVlan{}};
    RH_TRY(host->SetVf(link->index, vf, vlan));
    for (const VfSettings& change :
         {VfSettings{.spoofchk = true}, VfSettings{.trust = false},
          VfSettings{.link_state = VfLinkState::kAuto}, VfSettings{.rate = VfRate{}}}) {
      const auto set = host->SetVf(link->index, vf, change);
      if (!set && set.error().code != ErrorCode::kUnsupported && set.error().code != ErrorCode::kInvalid)
        return Fail(set.error());
    }
    return {};
  }

  static JournalEntry WithAllDevices(const RecoveredEntry& recovered) {
    JournalEntry entry = recovered.entry;
    for (const std::string& device : recovered.unreadable) entry.devices.emplace_back().device = device;
    return entry;
  }

  bool Try(const std::string& what, const Result<void>& done) {
    if (!done) result_.lost.push_back(what + ": " + Describe(done.error()));
    return done.has_value();
  }

  const Root& root_;
  Kernel& kernel_;
  const Journal& journal_;
  const UnreadableEntry& file_;
  Recovery result_;
};

}  // namespace

Result<Recovery> RecoverAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                                   const UnreadableEntry& file, bool force) {
  return Recoverer(root, kernel, journal, file).Run(force);
}

}  // namespace railhead::attachment
