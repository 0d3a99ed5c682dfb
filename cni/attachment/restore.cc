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
Result<std::optional<Link>> FindIn(RouteApi& route, const AttachedLink& link) {
  if (auto found = RH_TRY(route.FindLinkOfDevice(link.device)); found) return found;
  if (!link.parentless) return std::nullopt;
  const auto wanted = link.vf_change.mac.value_or(link.host_mac);
  for (const auto& name : {link.pod_name, link.host_name}) {
    auto found = RH_TRY(route.FindLink(name));
    if (found && found->parent_device.empty() && (found->mac == link.host_mac || found->mac == wanted))
      return found;
  }
  return std::nullopt;
}

Result<std::optional<Link>> FindOnHost(const Way& way, const AttachedLink& link) {
  const auto address = PciAddress::Parse(link.device);
  if (address) {
    for (const auto& name : RH_TRY(OwnNetdevsOf(way.root, *address))) {
      if (auto found = RH_TRY(way.host.FindLink(name)); found) return found;
    }
  }
  if (!link.parentless) return std::nullopt;
  for (const auto& name : {link.host_name, link.pod_name}) {
    auto found = RH_TRY(way.host.FindLink(name));
    if (found && found->parent_device.empty() && found->mac == link.host_mac) return found;
  }
  return std::nullopt;
}

Result<void> RemoveRules(RouteApi& pod, const AttachedLink& link) {
  if (link.table == 0) return {};
  for (const auto& rule : RulesFor(link.addresses, link.pod_name, link.table)) {
    RH_TRY_WRAP(pod.DeleteRule(rule), "removing rule " + rule.ToString());
  }
  return {};
}

// In the pod: what came from ADD or from the pod itself, and what is someone else's on the
// host by now, for which the kernel refuses the whole move.
Result<void> DropAltNamesInPod(const Way& way, const AttachedLink& link, const Link& found) {
  for (const auto& name : found.alt_names) {
    const bool of_host = Contains(link.host_alt_names, name) && name != link.host_name;
    if (of_host && !RH_TRY(way.host.FindLink(name))) continue;
    RH_TRY(way.pod->DeleteAltName(found.index, name));
  }
  return {};
}

Result<void> LeavePod(const Way& way, const AttachedLink& link) {
  if (way.pod == nullptr) return {};
  RH_TRY(RemoveRules(*way.pod, link));
  RH_TRY(ReturnRdma(way.root, way.kernel, link, *way.pod_ns, way.host_ns));
  const auto found = RH_TRY(FindIn(*way.pod, link));
  if (!found) return {};
  RH_TRY(DropAltNamesInPod(way, link, *found));
  const std::string name = RH_TRY(ClaimHostName(way.root, way.host, link, std::nullopt));
  const auto moved = way.pod->MoveLink(found->index, way.host_ns, name, link.host_mtu);
  // Not atomic: after an error the device can be on the host all the same, and
  // what is missing is set there.
  if (!moved && RH_TRY(FindIn(*way.pod, link))) {
    return Fail(Wrap(moved.error(), "moving " + link.device + " back to the host as " + name));
  }
  return {};
}

// What the pod has put on its NIC is left behind by the move, and would send through it, past the settings
// of the VF's next pod. Looked for when the NIC is out of the pod's reach; but from a macvlan it can make
// others beside it (macvlan_common_newlink), for as long as there is one.
Result<void> RemoveUppers(const Way& way, const AttachedLink& link, const Link& on_host) {
  if (way.pod == nullptr) return {};  // they went with it
  for (bool late = false;; late = std::chrono::steady_clock::now() >= way.deadline) {
    const auto uppers = RH_TRY(way.pod->ListUppers(on_host.index, way.host_ns));
    if (uppers.empty()) return {};
    if (late)
      return Fail(ErrorCode::kBusy, "the pod puts ever new interfaces on " + link.device,
                  "end its processes");
    // It may have moved others into namespaces that are out of our sight.
    RH_TRY(MarkLeft(way.root, link.device, "its pod had put " + uppers.front().name + " on it"));
    for (const Link& upper : uppers) {
      RH_TRY_WRAP(way.pod->DeleteLink(upper.index),
                  "removing " + upper.name + ", which the pod has put on " + link.device);
    }
  }
}

Result<std::optional<PciDevice>> FindFunction(const Way& way, const AttachedLink& link) {
  const auto address = PciAddress::Parse(link.device);
  if (!address) return std::nullopt;
  return FindPciDevice(way.root, *address);
}

// nullopt: the device has no netdev any more (VF removed, driver unbound or replaced),
// so nothing of it can be restored.
Result<std::optional<Link>> AwaitOnHost(const Way& way, const AttachedLink& link) {
  for (PollPause pause;;) {
    if (auto found = RH_TRY(FindOnHost(way, link)); found) return found;
    const auto device = RH_TRY(FindFunction(way, link));
    if (!device || !device->driver) return std::nullopt;
    if (!link.driver.empty() && *device->driver != link.driver) return std::nullopt;
    if (std::chrono::steady_clock::now() >= way.deadline) {
      return Fail(ErrorCode::kBusy, "device " + link.device + " has not come back from its pod's namespace",
                  "a process may still keep that namespace alive: end it and DEL is retried");
    }
    std::this_thread::sleep_for(pause.Next());
  }
}

// What puts back what ADD changed and is not yet back: a driver refuses settings
// that it does not know even when nothing would change.
VfChange InverseOf(const VfChange& change, const VfState& before, const VfState& now) {
  VfChange inverse;
  if (change.mac && now.mac != before.mac) inverse.mac = before.mac;
  if (change.vlan &&
      (now.vlan != before.vlan || now.qos != before.qos || now.vlan_proto != before.vlan_proto)) {
    inverse.vlan = VfChange::Vlan{before.vlan, before.qos, before.vlan_proto};
  }
  if (change.spoofchk && now.spoofchk != before.spoofchk) inverse.spoofchk = before.spoofchk;
  if (change.trust && now.trust != before.trust) inverse.trust = before.trust;
  if (change.link_state && now.link_state != before.link_state) inverse.link_state = before.link_state;
  if (change.rate && (now.min_tx_rate != before.min_tx_rate || now.max_tx_rate != before.max_tx_rate)) {
    inverse.rate = VfChange::Rate{before.min_tx_rate.value_or(0), before.max_tx_rate.value_or(0)};
  }
  return inverse;
}

// Each step is decided by what is there, not by what an interrupted try has done
// already. With an administrative MAC before, the driver takes host_mac as one when
// it binds; without, it makes one up, and RestoreLink sets host_mac.
Result<void> RestoreMacByBinding(const Way& way, const AttachedLink& link, int pf, const VfState& now) {
  const std::string what = "restoring the MAC of VF " + std::to_string(link.vf);
  const MacAddress& before = link.host_vf->mac;
  VfChange change;
  if (before.IsZero()) {
    if (now.mac == before) return {};
    change.mac = before;
    RH_TRY_WRAP(way.host.SetVf(pf, link.vf, change), what);
    return way.kernel.RebindDriver(link.device);
  }
  const auto netdev = RH_TRY(FindOnHost(way, link));
  MacAddress administrative = now.mac;
  if (netdev && netdev->mac != link.host_mac) {
    change.mac = administrative = link.host_mac;
    RH_TRY_WRAP(way.host.SetVf(pf, link.vf, change), what);
    RH_TRY(way.kernel.RebindDriver(link.device));
  }
  if (administrative == before) return {};
  change.mac = before;
  return WithContext(way.host.SetVf(pf, link.vf, change), what);
}

Result<void> RestoreVf(const Way& way, const AttachedLink& link) {
  // A rebind can have been interrupted while the PF said another MAC (RebindKeepingMac).
  const bool mac = link.vf_change.mac || !link.rebound_for.empty();
  if ((link.vf_change.Empty() && !mac) || !link.host_vf) return {};
  const auto pf = RH_TRY(FindPfOnHost(way.root, way.host, link));
  if (!pf) return {};
  const auto now = RH_TRY(way.host.GetVf(pf->index, link.vf));
  if (!now) return {};  // the VFs were removed
  VfChange inverse = InverseOf(link.vf_change, *link.host_vf, *now);
  if (mac && NeedsRebindForMac(link.driver)) {
    inverse.mac.reset();
    RH_TRY(RestoreMacByBinding(way, link, pf->index, *now));
  }
  if (inverse.Empty()) return {};
  return WithContext(way.host.SetVf(pf->index, link.vf, inverse),
                     "restoring VF " + std::to_string(link.vf) + " of " + pf->name);
}

// What is not as it was, and only that; whether ADD changed it or the pod did.
LinkChange InverseOf(const AttachedLink& link, const Link& now) {
  LinkChange change;
  if (now.mtu != link.host_mtu) change.mtu = link.host_mtu;
  if (now.mac != link.host_mac && link.vf_change.mac) change.mac = link.host_mac;
  if (now.alias != link.host_alias) change.alias = link.host_alias;
  if (now.tx_queue_len != link.host_tx_queue_len) change.tx_queue_len = link.host_tx_queue_len;
  if (now.promiscuous != link.host_promiscuous) change.promiscuous = link.host_promiscuous;
  if (now.all_multicast != link.host_all_multicast) change.all_multicast = link.host_all_multicast;
  return change;
}

// RestoreVf() comes before, and the PF can reset the VF for what that sets.
template <typename Call>
Result<void> AfterRestore(const Way& way, const AttachedLink& link, const Call& call) {
  const bool set = link.host_vf && (!link.vf_change.Empty() || !link.rebound_for.empty());
  return set ? CallDuringReset(call, way.deadline) : call();
}

// A MAC that the pod itself has set. A PF may refuse what it allowed the pod, or the driver
// made up a new one when it was bound again: no reason to keep a sandbox from going.
void RestoreMacOfPod(const Way& way, const AttachedLink& link, const Link& now) {
  if (link.vf_change.mac || now.mac == link.host_mac || link.host_mac.IsZero()) return;
  (void)way.host.ChangeLink(now.index, {.mac = link.host_mac});
}

bool Changes(const LinkChange& change) {
  return change.name || change.mac || change.mtu || change.up || change.alias || change.tx_queue_len ||
         change.promiscuous || change.all_multicast;
}

Result<void> RestoreLink(const Way& way, const AttachedLink& link) {
  const auto found = RH_TRY(AwaitOnHost(way, link));
  if (!found) return {};
  RH_TRY(RemovePodAltNames(way.host, link, *found));
  LinkChange change = InverseOf(link, *found);
  const std::string name = RH_TRY(ClaimHostName(way.root, way.host, link, found->index));
  if (found->name != name) {
    change.name = name;
    if (found->up)
      RH_TRY(way.host.ChangeLink(found->index, {.up = false}));  // older kernels refuse to rename otherwise
  }
  const bool up = found->up && !change.name;
  if (up != link.host_up) change.up = link.host_up;
  if (Changes(change)) {
    RH_TRY_WRAP(AfterRestore(way, link, [&] { return way.host.ChangeLink(found->index, change); }),
                "restoring " + link.device + " as " + link.host_name + " on the host");
  }
  RestoreMacOfPod(way, link, *found);
  return RestoreAltNames(way.root, way.host, link, *found, name);
}

// Replaces what the pod has left by the driver's defaults. A PF with VFs is never bound anew: that would
// remove the VFs.
Result<void> RebindForSettings(const Way& way, const AttachedLink& link, const LeftSettings& left) {
  const auto function = RH_TRY(FindFunction(way, link));
  if (!function || !function->driver || function->sriov_numvfs > 0) {
    return Fail(ErrorCode::kBusy,
                "device " + link.device +
                    " still has settings of its pod, which cannot be put back: " + Describe(left),
                function && function->sriov_numvfs > 0
                    ? "set them by ethtool or remove its VFs, after which the driver can be bound anew"
                    : "set them by ethtool");
  }
  RH_TRY(way.before_rebind(link.device, Describe(left)));
  RH_TRY(RebindKeepingMac(way.root, way.kernel, way.host, link));
  return {};
}

Result<void> RestoreDevice(const Way& way, const AttachedLink& link) {
  if (link.host_settings.values.empty()) return {};
  const std::string what = "restoring the settings of " + link.device;
  auto found = RH_TRY(AwaitOnHost(way, link));
  if (!found) return {};
  const LeftSettings left = RH_TRY_WRAP(RestoreSettings(way.devices, *found, link.host_settings), what);
  if (left.fields.empty()) return {};
  RH_TRY_WRAP(RebindForSettings(way, link, left), what);
  found = RH_TRY(AwaitOnHost(way, link));
  // What is refused even now is the driver's default, not the pod's value.
  if (found) RH_TRY_WRAP(RestoreSettings(way.devices, *found, link.host_settings), what);
  return {};
}

// A rebind that was killed half-way left the device without a driver,
// and so without an interface to restore. Who else unbinds it means it; and what has
// no driver at all any more cannot be bound.
Result<void> BindIfUnbound(const Way& way, const AttachedLink& link) {
  const bool for_mac = link.vf_change.mac && NeedsRebindForMac(link.driver);
  if (!for_mac && link.rebound_for.empty()) return {};
  const auto device = RH_TRY(FindFunction(way, link));
  if (!device || device->driver) return {};
  auto bound = way.kernel.BindDriver(link.device, link.driver);
  if (!bound && bound.error().code == ErrorCode::kNotFound) return {};
  return bound;
}

Result<void> BringLinkHome(const Way& way, const AttachedLink& link) {
  if (link.user_space) return RestoreVf(way, link);  // it has never left
  RH_TRY(BindIfUnbound(way, link));
  RH_TRY(LeavePod(way, link));
  if (const auto found = RH_TRY(AwaitOnHost(way, link)); found) RH_TRY(RemoveUppers(way, link, *found));
  RH_TRY(RestoreVf(way, link));
  // While the link is down: a driver then stores a setting without a reset, and refuses less.
  RH_TRY(RestoreDevice(way, link));
  return RestoreLink(way, link);
}

}  // namespace

Result<void> RebindOnHost(const Root& root, Kernel& kernel, const AttachedLink& link, Deadline deadline) {
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  const auto devices = RH_TRY(kernel.OpenDevices(host_ns));
  const BeforeRebind never;
  const Way way{root, kernel, host_ns, *host, nullptr, nullptr, deadline, *devices, never};
  const Link bound = RH_TRY(RebindKeepingMac(root, kernel, *host, link));
  // What is refused is the driver's default.
  RH_TRY(RestoreSettings(*devices, bound, link.host_settings));
  return RestoreLink(way, link);
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
  for (auto link = entry.links.rbegin(); link != entry.links.rend(); ++link) {
    if (auto home = BringLinkHome(way, *link); !home && !first) first = home.error();
  }
  if (first) return Fail(*first);
  return {};
}

}  // namespace railhead::attachment
