// Which devices one ADD is about.
//
// One: "deviceID", as Multus and capabilities give it; the interface is then called
// CNI_IFNAME. Several: "devices", or, without either, every device that kubelet
// gave to the pod (CNI_ARGS K8S_POD_UID, kubelet's checkpoint) and that Railhead's
// daemon allocated or "resourceName" names; the interfaces are then called after
// their rails. No daemon and no API server is asked.
//
// A pod gets what kubelet gave to it, and nothing else: a network of its own making, or a pod's annotation,
// can name any device. Where another allocator gives devices out, the policy of the fabric says for which
// networks and namespaces; never a PF. Root's own calls, which name no pod, name any device.
//
// An id that is a slot of a pool with late binding is the exception: railheadd says which
// device it shall be, now that the pod's accelerators are known.
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
  std::map<PciAddress, std::string> slots;  // of those that were bound late
  bool named_by_rail = false;               // otherwise CNI_IFNAME
};

// Empty when chained behind another plugin for a pod without such devices: the
// cluster network carries all pods. kInvalid when nothing says which device; kPermission when it is not the
// pod's.
Result<DeviceChoice> ChooseDevices(const Root& root, const CniRequest& request, const PluginConfig& config,
                                   const CallPermissions& may);

// A device before it is attached: found in sysfs, its interface on the host, and
// whether it may be taken from the host at all.
// Threads: reads sysfs and asks the host's rtnetlink.

// It is bound to vfio-pci or its like (netns/sys/device_nodes.h).
bool IsForUserSpace(const PciDevice& device);

// kNotFound, or kInvalid for what is no NIC or a PF whose VFs are in use.
Result<PciDevice> FindNic(const Root& root, const PciAddress& address);

// kBusy when it has a driver but no interface on the host: in another namespace, or
// on its way from there. kNotFound without a driver. kUnsupported for a function with several ports.
Result<Link> FindHostLink(const Root& root, RouteApi& host, const PciDevice& device);

// What an ADD answers that failed while its device went away: kNotFound with the reason before `error`'s
// message, whichever step met it first. Else `error` as it is.
Error WithLostDevice(const Root& root, const PciAddress& address, Error error);

// Moving takes addresses and routes away, and DEL cannot bring them back: kInvalid
// for what the host itself uses: by an address, a route of any table, a rule, or something on top of it.
Result<void> RefuseIfHostUses(const Root& root, RouteApi& host, const Link& link, const std::string& bdf);

// The names of devices on the host: taken back after a pod, and given back when somebody else frees them.
//
// Nothing that a pod calls its NIC stays on the host, and nothing keeps another NIC from its name for good: a
// device whose name is taken gets a substitute and a record (cni/state/displaced_names.h).
// Threads: as Kernel. Callers hold the locks of the devices.

// The name under which the device comes to the host: its own, or the substitute with a record when somebody
// on the host has its own, as name or as alternative name. `own_index`: of the device, if it is on the host
// already.
Result<std::string> ClaimHostName(const Root& root, RouteApi& host, const AttachedDevice& device,
                                  std::optional<int> own_index);

// Takes from a device on the host every alternative name that it did not have before, and the one that would
// refuse the renaming.
Result<void> RemovePodAltNames(RouteApi& host, const AttachedDevice& device, const Link& found);

// Adds the alternative names that the device had before; what somebody else has by now goes on record.
// `name`: its name now. A device that has all of its names has no record afterwards.
Result<void> RestoreAltNames(const Root& root, RouteApi& host, const AttachedDevice& device, const Link& now,
                             const std::string& name);

// Gives a device with a record those of its own names that are free. true: something has changed.
Result<bool> ReturnOwnNames(const Root& root, RouteApi& host, const std::string& device);

// The same for all devices with a record, after names may have become free. `held`: devices whose locks the
// caller has; the others are locked here, and left alone when another call holds them.
void ReturnFreeNames(const Root& root, RouteApi& host, const std::set<std::string>& held);

}  // namespace railhead::attachment
