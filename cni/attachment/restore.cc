#include "cni/attachment/restore.h"

#include <thread>

#include "cni/attachment/devices.h"
#include "cni/attachment/rdma.h"
#include "cni/attachment/release.h"
#include "cni/attachment/reset.h"
#include "cni/attachment/routing.h"
#include "cni/state/tenants.h"
#include "netns/base/poll_pause.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {
namespace {

// The sockets that one way home needs.
struct Way {
  const Root& root;
  Kernel& kernel;
  const NetNs& host_ns;
  RouteApi& host;
  const NetNs* pod_ns;  // nullptr: the namespace is gone
  RouteApi* pod;
  Deadline deadline;
  DeviceApi& devices;
  const BeforeRebind& before_rebind;
};

// By the parent device. By name and MAC only without one: a pod could leave a veth that has those of its VF,
// and keep the VF.
Result<std::optional<Link>> FindIn(RouteApi& route, const AttachedDevice& device) {
  if (auto found = RH_TRY(route.FindLinkOfDevice(device.device)); found) return found;
  if (!device.before.parentless) return std::nullopt;
  const MacAddress& before = device.before.mac;
  const auto wanted = device.wanted.vf.mac.value_or(before);
  for (const auto& name : {device.pod_name, device.before.name}) {
    auto found = RH_TRY(route.FindLink(name));
    if (found && found->parent_device.empty() && (found->mac == before || found->mac == wanted)) return found;
  }
  return std::nullopt;
}

Result<std::optional<Link>> FindOnHost(const Way& way, const AttachedDevice& device) {
  const auto address = PciAddress::Parse(device.device);
  if (address) {
    for (const auto& name : RH_TRY(OwnNetdevsOf(way.root, *address))) {
      if (auto found = RH_TRY(way.host.FindLink(name)); found) return found;
    }
  }
  if (!device.before.parentless) return std::nullopt;
  for (const auto& name : {device.before.name, device.pod_name}) {
    auto found = RH_TRY(way.host.FindLink(name));
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

// In the pod: what came from ADD or from the pod itself, and what is someone else's on the
// host by now, for which the kernel refuses the whole move.
Result<void> DropAltNamesInPod(const Way& way, const AttachedDevice& device, const Link& found) {
  for (const auto& name : found.alt_names) {
    const bool of_host = Contains(device.before.alt_names, name) && name != device.before.name;
    if (of_host && !RH_TRY(way.host.FindLink(name))) continue;
    RH_TRY(way.pod->DeleteAltName(found.index, name));
  }
  return {};
}

Result<void> LeavePod(const Way& way, const AttachedDevice& device) {
  if (way.pod == nullptr) return {};
  RH_TRY(RemoveRules(*way.pod, device));
  RH_TRY(ReturnRdma(way.root, way.kernel, device, *way.pod_ns, way.host_ns));
  const auto found = RH_TRY(FindIn(*way.pod, device));
  if (!found) return {};
  RH_TRY(DropAltNamesInPod(way, device, *found));
  const std::string name = RH_TRY(ClaimHostName(way.root, way.host, device, std::nullopt));
  const auto moved = way.pod->MoveLink(found->index, way.host_ns, name, device.before.link.mtu);
  // Not atomic: after an error the device can be on the host all the same, and
  // what is missing is set there.
  if (!moved && RH_TRY(FindIn(*way.pod, device))) {
    return Fail(Wrap(moved.error(), "moving " + device.device + " back to the host as " + name));
  }
  return {};
}

// What the pod has put on its NIC is left behind by the move, and would send through it, past the settings
// of the VF's next pod. Looked for when the NIC is out of the pod's reach; but from a macvlan it can make
// others beside it (macvlan_common_newlink), for as long as there is one.
Result<void> RemoveUppers(const Way& way, const AttachedDevice& device, const Link& on_host) {
  if (way.pod == nullptr) return {};  // they went with it
  for (bool late = false;; late = std::chrono::steady_clock::now() >= way.deadline) {
    const auto uppers = RH_TRY(way.pod->ListUppers(on_host.index, way.host_ns));
    if (uppers.empty()) return {};
    if (late)
      return Fail(ErrorCode::kBusy, "the pod puts ever new interfaces on " + device.device,
                  "end its processes");
    // It may have moved others into namespaces that are out of our sight.
    RH_TRY(MarkLeft(way.root, device.device, "its pod had put " + uppers.front().name + " on it"));
    for (const Link& upper : uppers) {
      RH_TRY_WRAP(way.pod->DeleteLink(upper.index),
                  "removing " + upper.name + ", which the pod has put on " + device.device);
    }
  }
}

Result<std::optional<PciDevice>> FindFunction(const Way& way, const AttachedDevice& device) {
  const auto address = PciAddress::Parse(device.device);
  if (!address) return std::nullopt;
  return FindPciDevice(way.root, *address);
}

// nullopt: the device has no netdev any more (VF removed, driver unbound or replaced),
// so nothing of it can be restored.
Result<std::optional<Link>> AwaitOnHost(const Way& way, const AttachedDevice& device) {
  for (PollPause pause;;) {
    if (auto found = RH_TRY(FindOnHost(way, device)); found) return found;
    const auto function = RH_TRY(FindFunction(way, device));
    if (!function || !function->driver) return std::nullopt;
    if (!device.before.driver.empty() && *function->driver != device.before.driver) return std::nullopt;
    if (std::chrono::steady_clock::now() >= way.deadline) {
      return Fail(ErrorCode::kBusy, "device " + device.device + " has not come back from its pod's namespace",
                  "a process may still keep that namespace alive: end it and DEL is retried");
    }
    std::this_thread::sleep_for(pause.Next());
  }
}

// Each step is decided by what is there, not by what an interrupted try has done
// already. With an administrative MAC before, the driver takes the former MAC as one when
// it binds; without, it makes one up, and RestoreLink sets it.
Result<void> RestoreMacByBinding(const Way& way, const AttachedDevice& device, int pf,
                                 const VfSettings& now) {
  const std::string what = "restoring the MAC of VF " + std::to_string(device.vf);
  const MacAddress before = MacOf(*device.before.vf);
  const auto set = [&](const MacAddress& mac) {
    return WithContext(way.host.SetVf(pf, device.vf, {.mac = mac}), what);
  };
  MacAddress administrative = MacOf(now);
  if (before.IsZero()) {
    if (administrative == before) return {};
    RH_TRY(set(before));
    return way.kernel.RebindDriver(device.device);
  }
  const auto netdev = RH_TRY(FindOnHost(way, device));
  if (netdev && netdev->mac != device.before.mac) {
    administrative = device.before.mac;
    RH_TRY(set(administrative));
    RH_TRY(way.kernel.RebindDriver(device.device));
  }
  return administrative == before ? Result<void>() : set(before);
}

// What puts back what ADD changed and is not yet back: a driver refuses settings
// that it does not know even when nothing would change.
Result<void> RestoreVf(const Way& way, const AttachedDevice& device) {
  // A rebind can have been interrupted while the PF said another MAC (RebindKeepingMac).
  const bool mac = device.wanted.vf.mac || !device.rebound_for.empty();
  if ((device.wanted.vf.Empty() && !mac) || !device.before.vf) return {};
  const auto pf = RH_TRY(FindPfOnHost(way.root, way.host, device));
  if (!pf) return {};
  const auto now = RH_TRY(way.host.GetVf(pf->index, device.vf));
  if (!now) return {};  // the VFs were removed
  VfSettings inverse = InverseOf(device.wanted.vf, *device.before.vf, *now);
  if (mac && NeedsRebindForMac(device.before.driver)) {
    inverse.mac.reset();
    RH_TRY(RestoreMacByBinding(way, device, pf->index, *now));
  }
  if (inverse.Empty()) return {};
  return WithContext(way.host.SetVf(pf->index, device.vf, inverse),
                     "restoring VF " + std::to_string(device.vf) + " of " + pf->name);
}

// What is not as it was, and only that; whether ADD changed it or the pod did.
LinkChange InverseOf(const AttachedDevice& device, const Link& now) {
  LinkChange change;
  ForEachLinkSetting([&](const char* /*key*/, auto setting, auto is) {
    const auto& before = device.before.link.*setting;
    if (before && *before != now.*is) change.*setting = before;
  });
  if (now.mac != device.before.mac && device.wanted.vf.mac) change.mac = device.before.mac;
  return change;
}

// RestoreVf() comes before, and the PF can reset the VF for what that sets.
template <typename Call>
Result<void> AfterRestore(const Way& way, const AttachedDevice& device, const Call& call) {
  const bool set = device.before.vf && (!device.wanted.vf.Empty() || !device.rebound_for.empty());
  return set ? CallDuringReset(call, way.deadline) : call();
}

// A MAC that the pod itself has set. A PF may refuse what it allowed the pod, or the driver
// made up a new one when it was bound again: no reason to keep a sandbox from going.
void RestoreMacOfPod(const Way& way, const AttachedDevice& device, const Link& now) {
  const MacAddress& before = device.before.mac;
  if (device.wanted.vf.mac || now.mac == before || before.IsZero()) return;
  (void)way.host.ChangeLink(now.index, {.mac = before});
}

bool Changes(const LinkChange& change) {
  return change.name || change.mac || change.up || static_cast<const LinkSettings&>(change) != LinkSettings{};
}

Result<void> RestoreLink(const Way& way, const AttachedDevice& device) {
  const auto found = RH_TRY(AwaitOnHost(way, device));
  if (!found) return {};
  RH_TRY(RemovePodAltNames(way.host, device, *found));
  LinkChange change = InverseOf(device, *found);
  const std::string name = RH_TRY(ClaimHostName(way.root, way.host, device, found->index));
  if (found->name != name) {
    change.name = name;
    if (found->up)
      RH_TRY(way.host.ChangeLink(found->index, {.up = false}));  // older kernels refuse to rename otherwise
  }
  const bool up = found->up && !change.name;
  if (up != device.before.up) change.up = device.before.up;
  if (Changes(change)) {
    RH_TRY_WRAP(AfterRestore(way, device, [&] { return way.host.ChangeLink(found->index, change); }),
                "restoring " + device.device + " as " + device.before.name + " on the host");
  }
  RestoreMacOfPod(way, device, *found);
  return RestoreAltNames(way.root, way.host, device, *found, name);
}

// Replaces what the pod has left by the driver's defaults. A PF with VFs is never bound anew: that would
// remove the VFs.
Result<void> RebindForSettings(const Way& way, const AttachedDevice& device, const LeftSettings& left) {
  const auto function = RH_TRY(FindFunction(way, device));
  if (!function || !function->driver || function->sriov_numvfs > 0) {
    return Fail(ErrorCode::kBusy,
                "device " + device.device +
                    " still has settings of its pod, which cannot be put back: " + Describe(left),
                function && function->sriov_numvfs > 0
                    ? "set them by ethtool or remove its VFs, after which the driver can be bound anew"
                    : "set them by ethtool");
  }
  RH_TRY(way.before_rebind(device.device, Describe(left)));
  RH_TRY(RebindKeepingMac(way.root, way.kernel, way.host, device));
  return {};
}

Result<void> RestoreDevice(const Way& way, const AttachedDevice& device) {
  if (device.before.settings.values.empty()) return {};
  const std::string what = "restoring the settings of " + device.device;
  auto found = RH_TRY(AwaitOnHost(way, device));
  if (!found) return {};
  const LeftSettings left = RH_TRY_WRAP(RestoreSettings(way.devices, *found, device.before.settings), what);
  if (left.fields.empty()) return {};
  RH_TRY_WRAP(RebindForSettings(way, device, left), what);
  found = RH_TRY(AwaitOnHost(way, device));
  // What is refused even now is the driver's default, not the pod's value.
  if (found) RH_TRY_WRAP(RestoreSettings(way.devices, *found, device.before.settings), what);
  return {};
}

// A rebind that was killed half-way left the device without a driver,
// and so without an interface to restore. Who else unbinds it means it; and what has
// no driver at all any more cannot be bound.
Result<void> BindIfUnbound(const Way& way, const AttachedDevice& device) {
  const std::string& driver = device.before.driver;
  const bool for_mac = device.wanted.vf.mac && NeedsRebindForMac(driver);
  if (!for_mac && device.rebound_for.empty()) return {};
  const auto function = RH_TRY(FindFunction(way, device));
  if (!function || function->driver) return {};
  auto bound = way.kernel.BindDriver(device.device, driver);
  if (!bound && bound.error().code == ErrorCode::kNotFound) return {};
  return bound;
}

Result<void> BringDeviceHome(const Way& way, const AttachedDevice& device) {
  if (device.before.user_space) return RestoreVf(way, device);  // it has never left
  RH_TRY(BindIfUnbound(way, device));
  RH_TRY(LeavePod(way, device));
  if (const auto found = RH_TRY(AwaitOnHost(way, device)); found) RH_TRY(RemoveUppers(way, device, *found));
  RH_TRY(RestoreVf(way, device));
  // While the link is down: a driver then stores a setting without a reset, and refuses less.
  RH_TRY(RestoreDevice(way, device));
  return RestoreLink(way, device);
}

}  // namespace

Result<void> RebindOnHost(const Root& root, Kernel& kernel, const AttachedDevice& device, Deadline deadline) {
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  const auto devices = RH_TRY(kernel.OpenDevices(host_ns));
  const BeforeRebind never;
  const Way way{root, kernel, host_ns, *host, nullptr, nullptr, deadline, *devices, never};
  const Link bound = RH_TRY(RebindKeepingMac(root, kernel, *host, device));
  // What is refused is the driver's default.
  RH_TRY(RestoreSettings(*devices, bound, device.before.settings));
  return RestoreLink(way, device);
}

Result<void> BringHome(const Root& root, Kernel& kernel, const JournalEntry& entry, const NetNs* pod_ns,
                       Deadline deadline, const BeforeRebind& before_rebind) {
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  std::unique_ptr<RouteApi> pod;
  if (pod_ns != nullptr) pod = RH_TRY(kernel.OpenRoute(*pod_ns));
  const auto devices = RH_TRY(kernel.OpenDevices(host_ns));
  const Way way{root, kernel, host_ns, *host, pod_ns, pod.get(), deadline, *devices, before_rebind};
  std::optional<Error> first;
  // The others go home even if one cannot.
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 cannot parse <ranges>' reverse view.
  for (auto device = entry.devices.rbegin(); device != entry.devices.rend(); ++device) {
    if (auto home = BringDeviceHome(way, *device); !home && !first) first = home.error();
  }
  if (first) return Fail(*first);
  return {};
}

}  // namespace railhead::attachment
