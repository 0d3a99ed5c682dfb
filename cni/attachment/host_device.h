// A device before it is attached: in sysfs, with its interface on the host, and whether the host uses it.
// Threads: reads sysfs and asks the host's rtnetlink.
#pragma once

#include <string>

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

// The error of an ADD whose device was removed or unbound during the call: kNotFound, whichever step failed.
// The reason comes before the message of `error`. Otherwise `error` unchanged.
Error WithLostDevice(const Root& root, const PciAddress& address, Error error);

// kInvalid for a device that the host uses (netns/nl/host_use.h), or that has an interface on top. A move
// would remove these, and DEL could not restore them.
Result<void> RefuseIfHostUses(const Root& root, RouteApi& host, const Link& link, const std::string& bdf);

}  // namespace railhead::attachment
