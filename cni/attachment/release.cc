#include "cni/attachment/release.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cni/attachment/acquire.h"
#include "cni/attachment/device_info.h"
#include "cni/attachment/devices.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/nccl_step.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/restore.h"
#include "cni/protocol/plugin.h"
#include "cni/state/attach_log.h"
#include "cni/state/displaced_names.h"
#include "cni/state/journal.h"
#include "cni/state/tenants.h"
#include "netns/base/files.h"
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

std::set<std::string> DevicesOf(const JournalEntry& entry) {
  std::set<std::string> devices;
  for (const AttachedDevice& device : entry.devices) {
    devices.insert(device.device);
    devices.insert(device.KubeletId());
  }
  return devices;
}

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

namespace {

// Some settings block each other. A driver refuses fewer queues than the RSS table names. Some drivers refuse
// both while an XDP program is attached.
constexpr int kPasses = 4;

// Whether the list `now` has something that `before` does not have.
bool HasMore(const std::string& now, const std::string& before) {
  if (now.empty()) return false;
  const auto known = Split(before, ',');
  const auto elements = Split(now, ',');
  return std::ranges::any_of(elements, [&](const std::string& element) { return !Contains(known, element); });
}

class Restoration {
 public:
  Restoration(DeviceApi& devices, const Link& link, const DeviceState& before)
      : devices_(devices), link_(link), before_(before) {}

  Result<UnrestoredSettings> Run() {
    RH_TRY(Look());
    for (int pass = 0; pass < kPasses && !differing_.empty(); ++pass) {
      WriteAll();
      const auto last = differing_;
      RH_TRY(Look());
      if (differing_ == last) break;
    }
    UnrestoredSettings unrestored;
    for (const auto& [field, now] : differing_) {
      if (!Matters(*field, now)) continue;
      unrestored.fields.emplace_back(field->name);
      const auto refused = refused_.find(field);
      if (unrestored.reason.empty() && refused != refused_.end()) unrestored.reason = refused->second.message;
    }
    return unrestored;
  }

 private:
  Result<void> Look() {
    const DeviceState now = RH_TRY(devices_.Read(link_));
    differing_.clear();
    for (const DeviceField& field : DeviceFields()) {
      const std::string* was = before_.Find(field.name);
      if (was == nullptr) continue;
      const std::string* is = now.Find(field.name);
      if (is == nullptr || *is != *was)
        differing_.emplace(&field, is == nullptr ? std::nullopt : std::optional(*is));
    }
    return {};
  }

  void WriteAll() {
    refused_.clear();
    std::set<DeviceSource> sources;
    for (const auto& [field, now] : differing_) sources.insert(field->source);
    // A driver may refuse other settings while a program is attached. So the pod's program is removed first,
    // and the host's is attached last.
    const bool programs = sources.erase(DeviceSource::kXdp) > 0;
    if (programs) DetachPrograms();
    for (const DeviceSource source : sources) WriteSource(source);
    if (programs) WriteSource(DeviceSource::kXdp);
  }

  void DetachPrograms() {
    DeviceState none;
    for (const auto& [field, now] : differing_) {
      if (field->source == DeviceSource::kXdp && now && !now->empty()) none.values.emplace(field->name, "");
    }
    if (!none.values.empty()) (void)devices_.Write(link_, DeviceSource::kXdp, none);
  }

  void WriteSource(DeviceSource source) {
    DeviceState values;
    for (const auto& [field, now] : differing_) {
      if (field->source == source) values.values.emplace(field->name, *before_.Find(field->name));
    }
    if (devices_.Write(link_, source, values)) return;
    // The kernel refuses the whole message for one value.
    for (const auto& [field, now] : differing_) {
      if (field->source == source) WriteAlone(*field);
    }
  }

  void WriteAlone(const DeviceField& field) {
    DeviceState value;
    value.values.emplace(field.name, *before_.Find(field.name));
    auto written = devices_.Write(link_, field.source, value);
    if (!written) refused_.emplace(&field, std::move(written.error()));
  }

  [[nodiscard]] bool Matters(const DeviceField& field, const std::optional<std::string>& now) const {
    const auto refused = refused_.find(&field);
    switch (field.kind) {
      case DeviceFieldKind::kSetting:
        return true;
      case DeviceFieldKind::kReported:
        // If the driver cannot set it, the pod could not set it, either.
        return refused != refused_.end() && refused->second.sys_errno != EOPNOTSUPP;
      case DeviceFieldKind::kAttached:
        // railheadd may not call bpf(2) (manifests/seccomp), and the driver of a PF with VFs cannot be bound
        // again.
        if (!now && field.source == DeviceSource::kTcx) return false;
        return !now || HasMore(*now, *before_.Find(field.name));
    }
    return true;
  }

  DeviceApi& devices_;
  const Link& link_;
  const DeviceState& before_;
  // In the table's order, with the present value; nullopt: the driver no longer reports it.
  std::map<const DeviceField*, std::optional<std::string>> differing_;
  std::map<const DeviceField*, Error> refused_;
};

}  // namespace

Result<UnrestoredSettings> RestoreSettings(DeviceApi& devices, const Link& link, const DeviceState& before) {
  return Restoration(devices, link, before).Run();
}

std::string Describe(const UnrestoredSettings& unrestored) {
  const std::string fields = Join(unrestored.fields, ", ");
  return unrestored.reason.empty() ? fields : fields + " (" + unrestored.reason + ")";
}

}  // namespace railhead::attachment
