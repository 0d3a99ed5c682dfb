// Facts about this node that several parts need.
#pragma once

#include <optional>
#include <string>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// The node's name as Kubernetes knows it: the first line of
// /etc/railhead/node-name when that file exists, else the kernel's host name.
Result<std::string> NodeName(const Root& root);

// The address by which Kubernetes knows the node (kubelet's, status.hostIP of its pods): the first line of
// /etc/railhead/node-address. nullopt without that file.
Result<std::optional<IpAddress>> NodeAddress(const Root& root);

// /proc/sys/kernel/random/boot_id: new with every boot. Read from the real
// /proc also under a test root, unless the root has a copy of its own.
Result<std::string> BootId(const Root& root);

}  // namespace railhead
