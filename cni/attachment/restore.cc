#include "cni/attachment/restore.h"

#include <algorithm>
#include <thread>

#include "cni/attachment/alt_names.h"
#include "cni/attachment/call_during_reset.h"
#include "cni/attachment/host_device.h"
#include "cni/attachment/host_names.h"
#include "cni/attachment/rdma.h"
#include "cni/attachment/rebind.h"
#include "cni/attachment/restore_settings.h"
#include "cni/attachment/routing.h"
#include "cni/state/tenants.h"
#include "netns/base/poll_pause.h"
#include "netns/base/text.h"
#include "netns/sys/mac_at_bind.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::attachment {
namespace {

constexpr std::size_t kFewUppers = 8;

// What restoring the devices of one entry needs.
struct RestoreContext {
  const Root& root;
  Kernel& kernel;
  const NetNs& host_ns;
  RouteApi& host;
  const NetNs* pod_ns;  // nullptr: the namespace is gone
  RouteApi* pod;
  Deadline deadline;
  bool take_back;  // a device that has not come back at the deadline
  DeviceApi& devices;
  const BeforeRebind& before_rebind;
};

// Finds the link by its parent device. Only a link without one is found by name and MAC: a pod could give
// these to a veth, and keep the VF.
Result<std::optional<Link>> FindIn(RouteApi& route, const AttachedDevice& device) {
  if (auto found = RH_TRY(route.FindLinkOfDevice(device.device)); found) return found;
  if (!device.before.parentless) return std::nullopt;
  const MacAddress& before = device.before.mac;
  const auto requested = device.requested.vf.mac.value_or(before);
  for (const auto& name : {device.pod_name, device.before.name}) {
    auto found = RH_TRY(route.FindLink(name));
    if (found && found->parent_device.empty() && (found->mac == before || found->mac == requested))
      return found;
  }
  return std::nullopt;
}

Result<std::optional<Link>> FindOnHost(const RestoreContext& context, const AttachedDevice& device) {
  const auto address = PciAddress::Parse(device.device);
  if (address) {
    for (const auto& name : RH_TRY(OwnNetdevsOf(context.root, *address))) {
      if (auto found = RH_TRY(context.host.FindLink(name)); found) return found;
    }
  }
  if (!device.before.parentless) return std::nullopt;
  for (const auto& name : {device.before.name, device.pod_name}) {
    auto found = RH_TRY(context.host.FindLink(name));
    if (found && found->parent_device.empty() && found->mac == device.before.mac) return found;
  }
  return std::nullopt;
}

Result<void> RemoveRules(RouteApi& pod, const AttachedDevice& device) {
  for (const auto& rule : RulesFor(device)) {
    RH_TRY_WRAP(pod.DeleteRule(rule), "removing rule " + rule.ToString());
  }
  return {};
}

// Removes, in the pod, alternative names that came from ADD or the pod, and those that another interface of
// the host has now. For one of these the kernel would refuse the whole move.
Result<void> DropAltNamesInPod(const RestoreContext& context, const AttachedDevice& device,
                               const Link& found) {
  for (const auto& name : found.alt_names) {
    const bool of_host = Contains(device.before.alt_names, name) && name != device.before.name;
    if (of_host && !RH_TRY(context.host.FindLink(name))) continue;
    RH_TRY(context.pod->DeleteAltName(found.index, name));
  }
  return {};
}

// Renames the device in the pod. The host's udev sees a device under the name that it arrives with, and each
// renaming on the host as one more event: it would see the pod's name first. Errors are ignored, since the
// move gives the device its name, too.
void TakeHostName(const RestoreContext& context, const AttachedDevice& device, const Link& found,
                  const std::string& name) {
  // Under another name than these, FindIn() would not find a device without parent after an interruption.
  if (found.name == name || (device.before.parentless && name != device.before.name)) return;
  // Kernels before 6.2 refuse to rename a link that is up. The move takes it down anyway.
  if (found.up && !context.pod->ChangeLink(found.index, {.up = false})) return;
  const auto rename = [&](const std::string& to) {
    return context.pod->ChangeLink(found.index, {.name = to}).has_value();
  };
  if (rename(name) || device.before.parentless) return;
  // An interface of the pod has the name. A device whose name the host has already arrives with the name that
  // the move asks for (__dev_change_net_namespace).
  const auto on_host = context.host.ListLinks();
  if (on_host) (void)std::ranges::any_of(*on_host, [&](const Link& link) { return rename(link.name); });
}

Result<void> LeavePod(const RestoreContext& context, const AttachedDevice& device) {
  if (context.pod == nullptr) return {};
  RH_TRY(RemoveRules(*context.pod, device));
  RH_TRY(ReturnRdma(context.root, context.kernel, device, *context.pod_ns, context.host_ns));
  const auto found = RH_TRY(FindIn(*context.pod, device));
  if (!found) return {};
  RH_TRY(DropAltNamesInPod(context, device, *found));
  const std::string name = RH_TRY(ChooseHostName(context.root, context.host, device, std::nullopt));
  TakeHostName(context, device, *found, name);
  const auto moved = context.pod->MoveLink(found->index, context.host_ns, name, device.before.link.mtu);
  // Not atomic: after an error the device can be on the host nevertheless. Later steps then set what is
  // missing.
  if (!moved && RH_TRY(FindIn(*context.pod, device))) {
    return Fail(Wrap(moved.error(), "moving " + device.device + " back to the host as " + name));
  }
  return {};
}

Result<std::optional<PciDevice>> FindFunction(const RestoreContext& context, const AttachedDevice& device) {
  const auto address = PciAddress::Parse(device.device);
  if (!address) return std::nullopt;
  return FindPciDevice(context.root, *address);
}

// Binding the driver of a PF with VFs again would remove the VFs.
Result<bool> CanRebind(const RestoreContext& context, const AttachedDevice& device) {
  const auto function = RH_TRY(FindFunction(context, device));
  if (!function || !function->driver) return false;
  return RH_TRY(VfsOf(context.root, function->address)).empty();
}

// Removes interfaces that the pod created on its NIC. They do not move with the NIC: from the pod they would
// send through it, past the settings of the next pod. Called when the pod can no longer reach the NIC. But as
// long as the pod has a macvlan, it can create others beside it (macvlan_common_newlink). The kernel removes
// each in some 20 ms, and all of them with the driver. Returns the link as it is then.
Result<Link> RemoveUppers(const RestoreContext& context, const AttachedDevice& device, const Link& on_host) {
  if (context.pod == nullptr) return on_host;  // the kernel deleted them with the namespace
  for (bool late = false;; late = std::chrono::steady_clock::now() >= context.deadline) {
    const auto uppers = RH_TRY(context.pod->ListUppers(on_host.index, context.host_ns));
    if (uppers.empty()) return on_host;
    const std::string why = "its pod had created " + uppers.front().name + " on it";
    if ((late || uppers.size() > kFewUppers) && RH_TRY(CanRebind(context, device))) {
      RH_TRY(context.before_rebind(device.device, why));
      return RebindKeepingMac(context.root, context.kernel, context.host, device);
    }
    if (late)
      return Fail(ErrorCode::kBusy, "the pod keeps creating interfaces on " + device.device,
                  "end its processes");
    // It may have moved others into namespaces that are not visible here.
    RH_TRY(MarkLeftover(context.root, device.device, why));
    for (const Link& upper : uppers) {
      RH_TRY_WRAP(context.pod->DeleteLink(upper.index),
                  "removing " + upper.name + ", which the pod created on " + device.device);
    }
  }
}

// At the deadline.
Result<std::optional<Link>> TakeBack(const RestoreContext& context, const AttachedDevice& device) {
  if (!context.take_back || !RH_TRY(CanRebind(context, device))) {
    return Fail(ErrorCode::kBusy, "device " + device.device + " has not come back from its pod's namespace",
                "a process may keep that namespace alive: end it; the runtime repeats DEL");
  }
  RH_TRY(
      context.before_rebind(device.device, "its pod's namespace is gone, and the device is in another one"));
  return RH_TRY_WRAP(RebindKeepingMac(context.root, context.kernel, context.host, device),
                     "taking device " + device.device + " back");
}

// nullopt: the device no longer has a netdev (VF removed, driver unbound or replaced), so it cannot be
// restored.
Result<std::optional<Link>> AwaitOnHost(const RestoreContext& context, const AttachedDevice& device) {
  for (PollPause pause;;) {
    if (auto found = RH_TRY(FindOnHost(context, device)); found) return found;
    const auto function = RH_TRY(FindFunction(context, device));
    if (!function || !function->driver) return std::nullopt;
    if (!device.before.driver.empty() && *function->driver != device.before.driver) return std::nullopt;
    if (std::chrono::steady_clock::now() >= context.deadline) return TakeBack(context, device);
    std::this_thread::sleep_for(pause.Next());
  }
}

// Each step depends on the present state, not on what an interrupted try did. If the VF had an administrative
// MAC before, the driver takes the former MAC from the PF when it binds. Otherwise the driver makes up a MAC,
// and RestoreLink sets the former one.
Result<void> RestoreMacByBinding(const RestoreContext& context, const AttachedDevice& device, int pf,
                                 const VfSettings& now) {
  const std::string what = "restoring the MAC of VF " + std::to_string(device.vf);
  const MacAddress before = MacOf(*device.before.vf);
  const auto set = [&](const MacAddress& mac) {
    return WithContext(context.host.SetVf(pf, device.vf, {.mac = mac}), what);
  };
  // BindIfUnbound() completes a rebind that is killed only if the entry says that there is one.
  const auto rebind = [&]() -> Result<void> {
    if (!device.requested.vf.mac) RH_TRY(context.before_rebind(device.device, "mac"));
    return context.kernel.RebindDriver(device.device);
  };
  MacAddress administrative = MacOf(now);
  if (before.IsZero()) {
    if (administrative == before) return {};
    RH_TRY(set(before));
    return rebind();
  }
  const auto netdev = RH_TRY(FindOnHost(context, device));
  if (netdev && netdev->mac != device.before.mac) {
    administrative = device.before.mac;
    RH_TRY(set(administrative));
    RH_TRY(rebind());
  }
  return administrative == before ? Result<void>() : set(before);
}

// Restores a MAC that the pod changed. Errors are ignored, since they must not keep a sandbox from ending.
// The PF may refuse now what it allowed the pod, or the driver made up a new MAC when it was bound again.
void RestoreMacOfPod(const RestoreContext& context, const AttachedDevice& device, const Link& now) {
  const MacAddress& before = device.before.mac;
  if (device.requested.vf.mac || now.mac == before || before.IsZero()) return;
  (void)context.host.ChangeLink(now.index, {.mac = before});
}

// A PF lets a trusted VF change even the MAC that the PF had set, and keeps the new one
// (igb_set_vf_mac_addr).
Result<bool> HasMacOfPod(const RestoreContext& context, const AttachedDevice& device) {
  if (!TakesMacAtBind(device.before.driver)) return false;
  const auto now = RH_TRY(FindOnHost(context, device));
  return now && now->mac != device.before.mac;
}

// Restores only VF settings that ADD changed and that differ now: a driver refuses settings that it does not
// support even if nothing would change.
Result<void> RestoreVf(const RestoreContext& context, const AttachedDevice& device) {
  // A rebind can have been interrupted while the PF had another MAC for the VF (RebindKeepingMac).
  const bool mac =
      device.requested.vf.mac || !device.rebound_for.empty() || RH_TRY(HasMacOfPod(context, device));
  if ((device.requested.vf.Empty() && !mac) || !device.before.vf) return {};
  const auto pf = RH_TRY(FindPfOnHost(context.root, context.host, device));
  if (!pf) return {};
  const auto now = RH_TRY(context.host.GetVf(pf->index, device.vf));
  if (!now) return {};  // the VFs were removed
  VfSettings inverse = InverseOf(device.requested.vf, *device.before.vf, *now);
  if (mac && TakesMacAtBind(device.before.driver)) {
    inverse.mac.reset();
    RH_TRY(RestoreMacByBinding(context, device, pf->index, *now));
  }
  if (inverse.Empty()) return {};
  return WithContext(context.host.SetVf(pf->index, device.vf, inverse),
                     "restoring VF " + std::to_string(device.vf) + " of " + pf->name);
}

// The settings that differ from before, whether ADD or the pod changed them.
LinkChange InverseOf(const AttachedDevice& device, const Link& now) {
  LinkChange change;
  ForEachLinkSetting([&](const char* /*key*/, auto setting, auto is) {
    const auto& before = device.before.link.*setting;
    if (before && *before != now.*is) change.*setting = before;
  });
  if (now.mac != device.before.mac && device.requested.vf.mac) change.mac = device.before.mac;
  return change;
}

// RestoreVf() ran before, and its changes can make the PF reset the VF.
template <typename Call>
Result<void> AfterRestore(const RestoreContext& context, const AttachedDevice& device, const Call& call) {
  const bool set = device.before.vf && (!device.requested.vf.Empty() || !device.rebound_for.empty());
  return set ? CallDuringReset(call, context.deadline) : call();
}

bool Changes(const LinkChange& change) {
  return change.name || change.mac || change.up || static_cast<const LinkSettings&>(change) != LinkSettings{};
}

Result<void> RestoreLink(const RestoreContext& context, const AttachedDevice& device) {
  const auto found = RH_TRY(AwaitOnHost(context, device));
  if (!found) return {};
  RH_TRY(RemovePodAltNames(context.host, device, *found));
  LinkChange change = InverseOf(device, *found);
  const std::string name = RH_TRY(ChooseHostName(context.root, context.host, device, found->index));
  if (found->name != name) {
    change.name = name;
    if (found->up)
      RH_TRY(context.host.ChangeLink(found->index,
                                     {.up = false}));  // older kernels refuse to rename a link that is up
  }
  const bool up = found->up && !change.name;
  if (up != device.before.up) change.up = device.before.up;
  if (Changes(change)) {
    RH_TRY_WRAP(AfterRestore(context, device, [&] { return context.host.ChangeLink(found->index, change); }),
                "restoring " + device.device + " as " + device.before.name + " on the host");
  }
  RestoreMacOfPod(context, device, *found);
  return RestoreAltNames(context.root, context.host, device, *found, name);
}

// Replaces the pod's settings by the driver's defaults. The driver of a PF with VFs is never bound again:
// that would remove the VFs.
Result<void> RebindForSettings(const RestoreContext& context, const AttachedDevice& device,
                               const UnrestoredSettings& unrestored) {
  const auto function = RH_TRY(FindFunction(context, device));
  const bool has_vfs = function && !RH_TRY(VfsOf(context.root, function->address)).empty();
  if (!function || !function->driver || has_vfs) {
    return Fail(ErrorCode::kBusy,
                "device " + device.device +
                    " still has settings of its pod, which cannot be restored: " + Describe(unrestored),
                has_vfs
                    ? "set them with ethtool; or remove its VFs, after which the driver can be bound again"
                    : "set them with ethtool");
  }
  RH_TRY(context.before_rebind(device.device, Describe(unrestored)));
  RH_TRY(RebindKeepingMac(context.root, context.kernel, context.host, device));
  return {};
}

Result<void> RestoreDeviceSettings(const RestoreContext& context, const AttachedDevice& device) {
  if (device.before.settings.values.empty()) return {};
  const std::string what = "restoring the settings of " + device.device;
  auto found = RH_TRY(AwaitOnHost(context, device));
  if (!found) return {};
  const UnrestoredSettings unrestored =
      RH_TRY_WRAP(RestoreSettings(context.devices, *found, device.before.settings), what);
  if (unrestored.fields.empty()) return {};
  RH_TRY_WRAP(RebindForSettings(context, device, unrestored), what);
  found = RH_TRY(AwaitOnHost(context, device));
  // A value that is refused even now is the driver's default, not the pod's.
  if (found) RH_TRY_WRAP(RestoreSettings(context.devices, *found, device.before.settings), what);
  return {};
}

// Completes a rebind that was killed after it had unbound the driver: the device then has no interface to
// restore. A device that another program unbound stays unbound, and so does a device whose driver was
// unloaded.
Result<void> BindIfUnbound(const RestoreContext& context, const AttachedDevice& device) {
  const std::string& driver = device.before.driver;
  const bool for_mac = device.requested.vf.mac && TakesMacAtBind(driver);
  if (!for_mac && device.rebound_for.empty()) return {};
  const auto function = RH_TRY(FindFunction(context, device));
  if (!function || function->driver) return {};
  auto bound = context.kernel.BindDriver(device.device, driver);
  if (!bound && bound.error().code == ErrorCode::kNotFound) return {};
  return bound;
}

Result<void> RestoreDeviceToHost(const RestoreContext& context, const AttachedDevice& device) {
  if (device.before.user_space) return RestoreVf(context, device);  // it was never moved
  RH_TRY(BindIfUnbound(context, device));
  RH_TRY(LeavePod(context, device));
  if (auto found = RH_TRY(AwaitOnHost(context, device)); found) {
    found = RH_TRY(RemoveUppers(context, device, *found));
    RestoreMacOfPod(context, device, *found);  // before the PF takes the trust from it
  }
  RH_TRY(RestoreVf(context, device));
  // While the link is down: a driver then stores settings without a reset, and refuses fewer.
  RH_TRY(RestoreDeviceSettings(context, device));
  return RestoreLink(context, device);
}

}  // namespace

Result<void> RebindOnHost(const Root& root, Kernel& kernel, const AttachedDevice& device, Deadline deadline) {
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  const auto devices = RH_TRY(kernel.OpenDevices(host_ns));
  const BeforeRebind never;
  const RestoreContext context{root,    kernel,   host_ns, *host,    nullptr,
                               nullptr, deadline, false,   *devices, never};
  const Link bound = RH_TRY(RebindKeepingMac(root, kernel, *host, device));
  // A setting that is refused has the driver's default.
  RH_TRY(RestoreSettings(*devices, bound, device.before.settings));
  return RestoreLink(context, device);
}

Result<void> RestoreToHost(const Root& root, Kernel& kernel, const JournalEntry& entry, const NetNs* pod_ns,
                           Deadline deadline, const BeforeRebind& before_rebind) {
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  std::unique_ptr<RouteApi> pod;
  if (pod_ns != nullptr) pod = RH_TRY(kernel.OpenRoute(*pod_ns));
  const auto devices = RH_TRY(kernel.OpenDevices(host_ns));
  const bool take_back = pod_ns == nullptr && deadline > std::chrono::steady_clock::now();
  const RestoreContext context{root,      kernel,   host_ns,   *host,    pod_ns,
                               pod.get(), deadline, take_back, *devices, before_rebind};
  std::optional<Error> first;
  // The others are restored even if one cannot be.
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 cannot parse <ranges>' reverse view.
  for (auto device = entry.devices.rbegin(); device != entry.devices.rend(); ++device) {
    if (auto restored = RestoreDeviceToHost(context, *device); !restored && !first) first = restored.error();
  }
  if (first) return Fail(*first);
  return {};
}

}  // namespace railhead::attachment
