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
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/attachment/plugin_config.h"
#include "cni/fabric/call_permissions.h"
#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

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

// A device before it is attached: in sysfs, with its interface on the host, and whether the host uses it.
// Threads: reads sysfs and asks the host's rtnetlink.

// Whether it is bound to vfio-pci or a similar driver (netns/sys/device_nodes.h).
bool IsForUserSpace(const PciDevice& device);

// Errors: kNotFound; kInvalid for a device that is not a NIC, and for a PF with VFs.
Result<PciDevice> FindNic(const Root& root, const PciAddress& address);

// A device with a driver but without an interface on the host gives kBusy: the interface is in another
// namespace. Without a driver the error is kNotFound. A function with several ports gives kUnsupported.
Result<Link> FindHostLink(const Root& root, RouteApi& host, const PciDevice& device);

// The error of an ADD whose device was removed or unbound during the call: kNotFound, whichever step failed.
// The reason comes before the message of `error`. Otherwise `error` unchanged.
Error WithLostDevice(const Root& root, const PciAddress& address, Error error);

// kInvalid for a device that the host uses (netns/nl/host_use.h), or that has an interface on top. A move
// would remove these, and DEL could not restore them.
Result<void> RefuseIfHostUses(const Root& root, RouteApi& host, const Link& link, const std::string& bdf);

// The names of devices on the host.
//
// A device gets its own names when it is restored. No name that the pod gave it stays. If another interface
// has its name, it gets a substitute name and a record (cni/state/displaced_names.h). When the name is free
// again, the device gets it. Threads: as Kernel. Callers hold the locks of the devices.

// The device's name on the host: its own one. If another interface has that as its name or alternative name,
// a substitute, and writes the record. `own_index`: the device's, if it is on the host already.
Result<std::string> ChooseHostName(const Root& root, RouteApi& host, const AttachedDevice& device,
                                   std::optional<int> own_index);

// Removes every alternative name that the device did not have before, and the one that would prevent the
// renaming.
Result<void> RemovePodAltNames(RouteApi& host, const AttachedDevice& device, const Link& found);

// Adds the alternative names that the device had before. Those that another interface has now go into the
// record. `name`: the device's name now. Removes the record of a device that has all of its names.
Result<void> RestoreAltNames(const Root& root, RouteApi& host, const AttachedDevice& device, const Link& now,
                             const std::string& name);

// Gives a device that has a record its own names, as far as they are free. true: it got some.
Result<bool> ReturnOwnNames(const Root& root, RouteApi& host, const std::string& device);

// The same for all devices that have a record. `held`: devices whose locks the caller holds. This locks the
// others, and skips those that another call holds.
void ReturnFreeNames(const Root& root, RouteApi& host, const std::set<std::string>& held);

}  // namespace railhead::attachment
