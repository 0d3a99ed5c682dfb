#include "cni/attachment/devices.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cni/attachment/acquire.h"
#include "cni/protocol/plugin.h"
#include "cni/state/allocation.h"
#include "cni/state/bind_protocol.h"
#include "cni/state/displaced_names.h"
#include "cni/state/kubelet_checkpoint.h"
#include "cni/state/paths.h"
#include "netns/base/node.h"
#include "netns/base/text.h"
#include "netns/nl/host_use.h"
#include "netns/sys/device_nodes.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/network_managers.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {
namespace {

// Parsed device ids: PCI addresses, and slots of late binding that have no device yet.
struct RequestedIds {
  std::vector<PciAddress> devices;
  std::vector<std::string> slots;
};

Result<void> AddId(const std::string& field, const std::string& text, RequestedIds& requested) {
  if (const auto address = PciAddress::Parse(text); address) {
    requested.devices.push_back(*address);
    return {};
  }
  if (IsSlot(text)) {
    requested.slots.push_back(text);
    return {};
  }
  return Fail(ErrorCode::kInvalid,
              "network configuration: /" + field + ": '" + text + "' is not a PCI address",
              "for example 0000:43:10.0");
}

// Whether this network attaches a device that kubelet allocated to the pod.
Result<bool> IsOurs(const Root& root, const PluginConfig& config, const std::string& resource,
                    const std::string& id) {
  if (!config.resource.empty()) return resource == config.resource;
  const auto record = RH_TRY(ReadAllocation(root, id));
  return record && record->resource == resource;
}

Result<RequestedIds> DevicesOfPod(const Root& root, const PluginConfig& config, const std::string& pod_uid) {
  RequestedIds ids;
  const auto all = RH_TRY_WRAP(ReadCheckpoint(root), "looking up the devices of pod " + pod_uid);
  for (const auto& allocated : all) {
    if (allocated.pod_uid != pod_uid) continue;
    for (const auto& id : allocated.ids) {
      const auto address = PciAddress::Parse(id);
      if (!address && !IsSlot(id)) continue;
      const std::string known_as = address ? address->ToString() : id;
      if (RH_TRY(IsOurs(root, config, allocated.resource, known_as))) RH_TRY(AddId("devices", known_as, ids));
    }
  }
  return ids;
}

// Of an id that kubelet did not allocate to the pod. A PF is the whole rail of a node: only kubelet allocates
// it.
Result<void> RefuseId(const Root& root, const CallPermissions& may, const std::string& pod_uid,
                      const std::string& id) {
  const auto address = PciAddress::Parse(id);
  const auto device = address ? RH_TRY(FindPciDevice(root, *address)) : std::nullopt;
  const bool may_be_named = address && (!device || device->is_vf);
  if (may.any_device() && may_be_named) return {};
  if (!may.any_device() && may_be_named && pod_uid.empty()) {
    return Fail(
        may.Refusal("device " + id + " of a pod whose UID the runtime does not tell (CNI_ARGS K8S_POD_UID)",
                    R"("devices": "any")"));
  }
  Error refusal = may.Refusal("device " + id + ", which kubelet did not give to the pod" +
                                  (pod_uid.empty() ? "" : " " + pod_uid) + ",",
                              R"("devices": "any")");
  if (!may_be_named) refusal.hint = "the pod must request it from kubelet, as the resource of its pool";
  return Fail(std::move(refusal));
}

Result<void> RefuseForeign(const Root& root, const CallPermissions& may, const CniRequest& request,
                           const RequestedIds& requested) {
  if (!may.is_pods()) return {};
  const std::string pod_uid = PodUid(request.args);
  std::set<std::string> allocated;
  if (!pod_uid.empty()) {
    const auto all = RH_TRY_WRAP(ReadCheckpoint(root), "looking for the devices of pod " + pod_uid);
    for (const auto& one : all) {
      if (one.pod_uid == pod_uid) allocated.insert(one.ids.begin(), one.ids.end());
    }
  }
  for (const auto& device : requested.devices) {
    if (allocated.contains(device.ToString())) continue;
    RH_TRY(RefuseId(root, may, pod_uid, device.ToString()));
  }
  for (const auto& slot : requested.slots) {
    if (!allocated.contains(slot)) RH_TRY(RefuseId(root, may, pod_uid, slot));
  }
  return {};
}

// kBusy when no daemon answers.
Result<void> BindLate(const Root& root, const CniRequest& request, RequestedIds& requested,
                      DeviceChoice& choice) {
  if (requested.slots.empty()) return {};
  std::ranges::sort(requested.slots);
  requested.slots.erase(std::unique(requested.slots.begin(), requested.slots.end()), requested.slots.end());
  const auto bindings = RH_TRY(
      BindSlots(root, {PodUid(request.args), request.container_id, requested.slots, PodName(request.args)}));
  for (const auto& [slot, device] : bindings) {
    const PciAddress address = *PciAddress::Parse(device);
    requested.devices.push_back(address);
    choice.slots[address] = slot;
  }
  return {};
}

tl::unexpected<Error> NoDeviceRequested() {
  return Fail(
      ErrorCode::kInvalid, "network configuration: /deviceID: no device is given",
      "the runtime passes it (Multus: annotation k8s.v1.cni.cncf.io/resourceName of the network; "
      "others: capability deviceID); for all devices of a pod it passes CNI_ARGS K8S_POD_UID; or list "
      "them as \"devices\"");
}

}  // namespace

Result<DeviceChoice> ChooseDevices(const Root& root, const CniRequest& request, const PluginConfig& config,
                                   const CallPermissions& may) {
  DeviceChoice choice;
  RequestedIds requested;
  if (!config.device_text.empty()) {
    RH_TRY(AddId("deviceID", config.device_text, requested));
    RH_TRY(RefuseForeign(root, may, request, requested));
    RH_TRY(BindLate(root, request, requested, choice));
    choice.devices = std::move(requested.devices);
    return choice;
  }
  choice.named_by_rail = true;
  if (!config.devices.empty()) {
    for (const auto& text : config.devices) RH_TRY(AddId("devices", text, requested));
    RH_TRY(RefuseForeign(root, may, request, requested));
  } else {
    const std::string uid = PodUid(request.args);
    if (uid.empty()) return NoDeviceRequested();
    requested = RH_TRY(DevicesOfPod(root, config, uid));
    if (requested.devices.empty() && requested.slots.empty() && config.prev_result.empty()) {
      return Fail(ErrorCode::kNotFound,
                  "kubelet has given no device" +
                      (config.resource.empty() ? std::string() : " of " + config.resource) + " to pod " +
                      uid + " (" + paths::KubeletCheckpoint(root) + ")",
                  "the pod must request the resource that railheadd advertises");
    }
  }
  RH_TRY(BindLate(root, request, requested, choice));
  choice.devices = std::move(requested.devices);
  std::ranges::sort(choice.devices);
  choice.devices.erase(std::unique(choice.devices.begin(), choice.devices.end()), choice.devices.end());
  return choice;
}

bool IsForUserSpace(const PciDevice& device) {
  return device.driver && UserSpaceOf(*device.driver) != UserSpace::kNone;
}

Result<PciDevice> FindNic(const Root& root, const PciAddress& address) {
  auto device = RH_TRY(FindPciDevice(root, address));
  if (!device) {
    return Fail(ErrorCode::kNotFound, "device " + address.ToString() + " does not exist on this node",
                "check whether the VF was removed after its allocation: /sys/bus/pci/devices");
  }
  if (!device->IsNetwork()) {
    return Fail(ErrorCode::kInvalid, "device " + address.ToString() + " is not a network controller");
  }
  const std::size_t vfs = device->is_vf ? 0 : RH_TRY(VfsOf(root, address)).size();
  if (vfs > 0) {
    return Fail(ErrorCode::kInvalid,
                "device " + address.ToString() + " is a PF with " + std::to_string(vfs) + " VFs",
                "attach one of its VFs, or set its sriov_numvfs to 0 to give the whole PF to a pod");
  }
  return *device;
}

Result<Link> FindHostLink(const Root& root, RouteApi& host, const PciDevice& device) {
  const std::string bdf = device.address.ToString();
  const auto names = RH_TRY(OwnNetdevsOf(root, device.address));
  // If one of them has moved, nothing shows which one is left.
  if (names.size() > 1) {
    return Fail(ErrorCode::kUnsupported,
                "device " + bdf + " has several interfaces of its own: " + Join(names, ", "),
                "a function with several ports cannot be given to a pod: keep it out of the pool");
  }
  if (names.empty()) {
    return Fail(device.driver ? ErrorCode::kBusy : ErrorCode::kNotFound,
                "device " + bdf + " has no network interface in the host's namespace",
                device.driver ? "it is in another namespace: of a pod that has not ended yet, or of one that "
                                "Railhead did not attach"
                              : "no driver is bound to it");
  }
  auto link = RH_TRY(host.FindLink(names.front()));
  if (!link) {
    return Fail(ErrorCode::kBusy,
                "interface " + names.front() + " of " + bdf + " has left the host's namespace");
  }
  return *link;
}

// The kernel removes the link "driver" before it calls the driver's remove function (__device_release_driver
// in drivers/base/dd.c). So the link is gone before anything else of the device.
Error WithLostDevice(const Root& root, const PciAddress& address, Error error) {
  const bool says_so = error.code == ErrorCode::kNotFound && error.sys_errno == 0;
  const std::string bdf = address.ToString();
  const auto device = FindPciDevice(root, address);
  if (says_so || !device || (*device && (*device)->driver)) return error;
  const std::string loss =
      *device ? "the driver of device " + bdf + " was unbound" : "device " + bdf + " was removed";
  error = Wrap(std::move(error), loss);
  error.code = ErrorCode::kNotFound;
  error.hint = *device ? "bind it to its driver again; look for the reason in dmesg"
                       : "if the VFs of its PF were created again, the pod needs another device";
  return error;
}

namespace {

// What to do about a device that the host uses.
std::string WayOut(const Root& root, const Link& link, const HostUse& use) {
  if (use.kind == HostUse::Kind::kPort) return "remove the device from it first";
  const auto managers = ManagersOf(root, link.index);
  if (!managers.empty()) {
    return Join(managers, " and ") + " manages " + link.name +
           ": make it leave the device alone (docs/operate/host-preparation.md), or keep the device out of "
           "the pool";
  }
  constexpr std::array kThings = {"port", "address", "rule", "route"};
  return std::string("a device that the host uses is never moved: remove the ") +
         kThings.at(static_cast<std::size_t>(use.kind)) + ", or keep the device out of the pool";
}

}  // namespace

Result<void> RefuseIfHostUses(const Root& root, RouteApi& host, const Link& link, const std::string& bdf) {
  const std::string what = "device " + bdf + " (" + link.name + ")";
  // The kernel destroys interfaces on top of a device that moves to another namespace.
  if (const auto uppers = RH_TRY(UpperDevicesOf(root, link.name)); !uppers.empty()) {
    return Fail(ErrorCode::kInvalid, what + " has " + Join(uppers, ", ") + " of the host on top",
                "remove these interfaces first, or keep the device out of the pool");
  }
  const auto node_address = RH_TRY(NodeAddress(root));
  const auto use = RH_TRY(FindHostUse(host, link, node_address));
  if (!use) return {};
  return Fail(ErrorCode::kInvalid, what + " " + use->text, WayOut(root, link, *use));
}

namespace {

// Whether another interface has the name.
Result<bool> IsNameInUse(RouteApi& host, const std::string& name, std::optional<int> own_index) {
  const auto holder = RH_TRY(host.FindLink(name));
  return holder && holder->index != own_index;
}

// Adds the names that are missing and free. false: another interface has one of them.
Result<bool> AddAltNames(RouteApi& host, const Link& link, const std::vector<std::string>& requested) {
  bool all = true;
  for (const std::string& name : requested) {
    if (Contains(link.alt_names, name)) continue;
    const auto added = host.AddAltName(link.index, name);
    if (!added && added.error().code != ErrorCode::kExists) return Fail(added.error());
    all = all && added.has_value();
  }
  return all;
}

Result<void> Rename(RouteApi& host, const Link& link, const std::string& name) {
  if (Contains(link.alt_names, name)) RH_TRY(host.DeleteAltName(link.index, name));
  // Kernels before 6.2 refuse to rename a link that is up.
  if (link.up) RH_TRY(host.ChangeLink(link.index, {.up = false}));
  auto renamed = host.ChangeLink(link.index, {.name = name});
  if (link.up) RH_TRY(host.ChangeLink(link.index, {.up = true}));
  return renamed;
}

// The device's link on the host; nullopt: it is in a pod, or has no driver.
Result<std::optional<Link>> FindOnHost(const Root& root, RouteApi& host, const PciAddress& address) {
  for (const std::string& name : RH_TRY(OwnNetdevsOf(root, address))) {
    if (auto link = RH_TRY(host.FindLink(name)); link) return link;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> ChooseHostName(const Root& root, RouteApi& host, const AttachedDevice& device,
                                   std::optional<int> own_index) {
  if (!RH_TRY(IsNameInUse(host, device.before.name, own_index))) return device.before.name;
  // Written first: a device with a substitute name but no record would keep that name.
  RH_TRY(WriteDisplacedNames(root, device.device, {device.before.name, device.before.alt_names}));
  for (int n = 0; n < kSubstitutes; ++n) {
    std::string name = SubstituteName(device.device, n);
    if (!RH_TRY(IsNameInUse(host, name, own_index))) return name;
  }
  return Fail(ErrorCode::kExists,
              "device " + device.device + " cannot come back to the host: " + device.before.name + " and " +
                  SubstituteName(device.device) + " to " + SubstituteName(device.device, kSubstitutes - 1) +
                  " are all names of other interfaces",
              "rename one of them");
}

Result<void> RemovePodAltNames(RouteApi& host, const AttachedDevice& device, const Link& found) {
  for (const std::string& name : found.alt_names) {
    const bool own = Contains(device.before.alt_names, name) && name != device.before.name;
    if (!own) RH_TRY(host.DeleteAltName(found.index, name));
  }
  return {};
}

Result<void> RestoreAltNames(const Root& root, RouteApi& host, const AttachedDevice& device, const Link& now,
                             const std::string& name) {
  const bool all = RH_TRY(AddAltNames(host, now, device.before.alt_names));
  if (all && name == device.before.name) return RemoveDisplacedNames(root, device.device);
  return WriteDisplacedNames(root, device.device, {device.before.name, device.before.alt_names});
}

Result<bool> ReturnOwnNames(const Root& root, RouteApi& host, const std::string& device) {
  const auto own = RH_TRY(ReadDisplacedNames(root, device));
  const auto address = PciAddress::Parse(device);
  if (!own || !address) return false;
  auto link = RH_TRY(FindOnHost(root, host, *address));
  if (!link) {
    // The address of a removed function may become another device.
    if (!RH_TRY(FindPciDevice(root, *address))) RH_TRY(RemoveDisplacedNames(root, device));
    return false;
  }
  const std::string before = link->name;
  if (link->name != own->name) {
    if (!IsSubstituteName(device, link->name)) {  // an administrator renamed it, or the VF was created again
      RH_TRY(RemoveDisplacedNames(root, device));
      return false;
    }
    if (RH_TRY(IsNameInUse(host, own->name, link->index))) return false;
    RH_TRY_WRAP(Rename(host, *link, own->name), "giving " + device + " its name " + own->name + " back");
  }
  const std::size_t missing = std::ranges::count_if(
      own->alt_names, [&](const std::string& name) { return !Contains(link->alt_names, name); });
  const bool all = RH_TRY(AddAltNames(host, *link, own->alt_names));
  if (all) RH_TRY(RemoveDisplacedNames(root, device));
  return before != own->name || (all && missing > 0);
}

void ReturnFreeNames(const Root& root, RouteApi& host, const std::set<std::string>& held) {
  const auto devices = ListDisplacedDevices(root);
  if (!devices) return;
  for (const std::string& device : *devices) {
    std::set<std::string> to_lock;
    if (!held.contains(device)) to_lock.insert(device);
    const auto locks = DeviceLocks::Acquire(root, to_lock, std::chrono::milliseconds(0));
    if (locks) (void)ReturnOwnNames(root, host, device);
  }
}

}  // namespace railhead::attachment
