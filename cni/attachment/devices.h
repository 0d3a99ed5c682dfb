// Which devices one ADD attaches.
//
// One device: "deviceID", which Multus or a capability sets. Its interface gets the name CNI_IFNAME. Several
// devices: "devices", or, without either key, every device of the pod in kubelet's checkpoint (CNI_ARGS
// K8S_POD_UID) that railheadd allocated or "resourceName" names. Their interfaces get the names of their
// rails. This asks no daemon and no API server.
//
// A pod gets only the devices that kubelet allocated to it, although its annotation or a network could name
// any. The fabric's policy can allow further VFs, for clusters with another allocator; it never allows a PF.
// Calls without a pod are root's own and may name any device.
//
// Slots of a pool with late binding are the exception: railheadd chooses their devices now, since the pod's
// accelerators are known.
// Threads: reads files; waits for the daemon where there are slots.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cni/attachment/plugin_config.h"
#include "cni/fabric/call_permissions.h"
#include "cni/protocol/cni_request.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"

namespace railhead::attachment {

struct DeviceChoice {
  std::vector<PciAddress> devices;          // sorted, each once
  std::map<PciAddress, std::string> slots;  // of devices that were bound to a slot
  bool named_by_rail = false;               // otherwise CNI_IFNAME
};

// Empty when chained behind another plugin, for a pod without such devices: the cluster network serves all
// pods. If nothing names a device, the error is kInvalid. A device that is not the pod's gives kPermission.
Result<DeviceChoice> ChooseDevices(const Root& root, const CniRequest& request, const PluginConfig& config,
                                   const CallPermissions& may);

}  // namespace railhead::attachment
