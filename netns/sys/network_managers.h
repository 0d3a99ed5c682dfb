// Which network managers of the host configure a network device, by their state files below /run.
//
// Both name the file by the interface's index. Their formats are private, so whatever cannot be read counts
// as "does not manage": callers only name a manager, and decide nothing by it.
// Source: systemd's networkd-state-file.c (link_save: ADMIN_STATE=, /run/systemd/netif/links/INDEX) and
// networkd-link.c (link_state_table); NetworkManager's nm-config.c (nm_config_device_state_write: [device],
// managed=, /run/NetworkManager/devices/INDEX). netplan writes the configuration of either.
// Threads: thread-safe. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "netns/base/root.h"

namespace railhead {

// "NetworkManager", "systemd-networkd". Sorted.
std::vector<std::string> ManagersOf(const Root& root, int link);

// Those that have state files here, whatever they manage. A container may not see the host's /run.
std::vector<std::string> ManagersOnHost(const Root& root);

}  // namespace railhead
