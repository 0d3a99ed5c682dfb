// A device that is not in a pod: in sysfs, with its interface on the host, and its PF.
// Threads: reads sysfs and asks the host's rtnetlink.
#pragma once

#include <optional>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::attachment {

// Whether it is bound to vfio-pci or a similar driver (netns/sys/user_space.h).
bool IsForUserSpace(const PciDevice& device);

// Errors: kNotFound; kInvalid for a device that is not a NIC, and for a PF with VFs.
Result<PciDevice> FindNic(const Root& root, const PciAddress& address);

// A device with a driver but without an interface on the host gives kBusy: the interface is in another
// namespace. Without a driver the error is kNotFound. A function with several ports gives kUnsupported.
Result<Link> FindHostLink(const Root& root, RouteApi& host, const PciDevice& device);

// The PF's interface on the host; nullopt: the PF was removed, and the VF with it.
Result<std::optional<Link>> FindPfOnHost(const Root& root, RouteApi& host, const AttachedDevice& device);

// The error of an ADD whose device was removed or unbound during the call: kNotFound, whichever step failed.
// The reason comes before the message of `error`. Otherwise `error` unchanged.
Error WithLostDevice(const Root& root, const PciAddress& address, Error error);

}  // namespace railhead::attachment
