#include "cni/attachment/devices.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cni/state/allocation.h"
#include "cni/state/bind_client.h"
#include "cni/state/kubelet_checkpoint.h"
#include "cni/state/paths.h"
#include "cni/state/slot_name.h"
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

}  // namespace railhead::attachment
