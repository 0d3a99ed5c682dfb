// A device before it is attached: found in sysfs, its interface on the host, and
// whether it may be taken from the host at all.
// Threads: reads sysfs and asks the host's rtnetlink.
#pragma once

#include <string>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

namespace railhead {

// It is bound to vfio-pci or its like (netns/sys/user_space.h).
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

}  // namespace railhead
