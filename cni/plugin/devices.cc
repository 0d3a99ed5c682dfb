#include "cni/plugin/devices.h"

#include <algorithm>

#include "cni/state/allocation.h"
#include "cni/state/checkpoint.h"
#include "cni/state/paths.h"

namespace railhead {
namespace {

constexpr const char* kPodUid = "K8S_POD_UID";

Result<PciAddress> ParseDevice(const std::string& field, const std::string& text) {
  const auto address = PciAddress::Parse(text);
  if (address) return *address;
  return Fail(ErrorCode::kInvalid, "network configuration: /" + field + ": '" + text + "' is no PCI address",
              "for example 0000:43:10.0");
}

// Whether a device that kubelet gave to the pod is for us to attach.
Result<bool> IsOurs(const Root& root, const PluginConfig& config, const std::string& resource,
                    const std::string& id) {
  if (!config.resource.empty()) return resource == config.resource;
  const auto record = RH_TRY(ReadAllocation(root, id));
  return record && record->resource == resource;
}

Result<std::vector<PciAddress>> DevicesOfPod(const Root& root, const PluginConfig& config,
                                             const std::string& pod_uid) {
  std::vector<PciAddress> devices;
  const auto all = RH_TRY_WRAP(ReadCheckpoint(root), "looking for the devices of pod " + pod_uid);
  for (const auto& given : all) {
    if (given.pod_uid != pod_uid) continue;
    for (const auto& id : given.ids) {
      const auto address = PciAddress::Parse(id);
      if (address && RH_TRY(IsOurs(root, config, given.resource, address->ToString()))) {
        devices.push_back(*address);
      }
    }
  }
  return devices;
}

tl::unexpected<Error> NothingNamed() {
  return Fail(
      ErrorCode::kInvalid, "network configuration: /deviceID: no device is given",
      "the runtime passes it (Multus: annotation k8s.v1.cni.cncf.io/resourceName of the network; "
      "others: capability deviceID); for all devices of a pod it passes CNI_ARGS K8S_POD_UID; or list "
      "them as \"devices\"");
}

}  // namespace

Result<DeviceChoice> ChooseDevices(const Root& root, const CniRequest& request, const PluginConfig& config) {
  DeviceChoice choice;
  if (!config.device_text.empty()) {
    choice.devices = {RH_TRY(ParseDevice("deviceID", config.device_text))};
    return choice;
  }
  choice.named_by_rail = true;
  if (!config.devices.empty()) {
    for (const auto& text : config.devices) choice.devices.push_back(RH_TRY(ParseDevice("devices", text)));
  } else {
    const auto uid = request.args.find(kPodUid);
    if (uid == request.args.end() || uid->second.empty()) return NothingNamed();
    choice.devices = RH_TRY(DevicesOfPod(root, config, uid->second));
    if (choice.devices.empty() && config.prev_result.empty()) {
      return Fail(ErrorCode::kNotFound,
                  "kubelet has given no device" +
                      (config.resource.empty() ? std::string() : " of " + config.resource) + " to pod " +
                      uid->second + " (" + paths::KubeletCheckpoint(root) + ")",
                  "the pod must request the resource that railheadd advertises");
    }
  }
  std::sort(choice.devices.begin(), choice.devices.end());
  choice.devices.erase(std::unique(choice.devices.begin(), choice.devices.end()), choice.devices.end());
  return choice;
}

}  // namespace railhead
