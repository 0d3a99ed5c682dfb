// CDI specs of what Allocate gives, for resources of a config.json with --use-cdi.
//
// The names are those of sriov-network-device-plugin: kind PREFIX/net-pci, PREFIX/net-accel or PREFIX/net-sf,
// and the device id. Unlike there, a spec is for one allocated device. It is written before Allocate is
// answered, and again when the daemon starts (RestoreAllocated()). After a reboot device nodes have other
// numbers, and kubelet does not allocate again. Threads: thread-safe. Errors: kIo; kConflict of GrantOf().
#pragma once

#include <string>

#include "deviceplugin/node/resources/grant.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::resources {

// "intel.com/net-pci=0000:03:02.0"
std::string CdiGrantName(const ResourceSpec& spec, const std::string& device_id);
std::string CdiGrantPath(const Root& root, const std::string& device_id);

Result<void> WriteCdiGrant(const Root& root, const ResourceSpec& spec, const PoolMember& member,
                           const Grant& grant);

}  // namespace railhead::resources
