// CDI specs of what Allocate gives, for resources of a config.json with --use-cdi.
//
// The names are those of sriov-network-device-plugin: kind PREFIX/net-pci, PREFIX/net-accel or
// PREFIX/net-sf, and the device id. Unlike there, a spec is one allocated device's, written
// before Allocate is answered, and again when the daemon starts (restore.h): device nodes have
// other numbers after a reboot, and kubelet does not allocate again.
// Threads: thread-safe. Errors: kIo; kConflict of GrantOf().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/grant.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// "intel.com/net-pci=0000:03:02.0"
std::string CdiGrantName(const ResourceSpec& spec, const std::string& device_id);
std::string CdiGrantPath(const Root& root, const std::string& device_id);

Result<void> WriteCdiGrant(const Root& root, const ResourceSpec& spec, const PoolMember& member,
                           const Grant& grant);

}  // namespace railhead
