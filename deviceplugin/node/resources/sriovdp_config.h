// sriov-network-device-plugin's config.json, as users have it.
//
// Reads resourceList with resourceName, resourcePrefix, deviceType (netDevice, accelerator, auxNetDevice),
// excludeTopology, additionalInfo and selectors (an object or a list). Keys of a selector: vendors, devices,
// drivers, pciAddresses, acpiIndexes, pfNames, rootDevices, linkTypes, ddpProfiles, pKeys, isRdma,
// needVhostNet, vdpaType and auxTypes. Each is accepted where the README or code of that program knows it.
// Keys are compared without regard to case, as Go's decoder does for that program. An unknown key is refused
// with the nearest known one.
//
// Such pools have no NCCL configuration. Containers get the device nodes from Allocate (RDMA where
// isRdma is set), as they do from that program, so that any CNI plugin works.
// Threads: pure function. Errors: kMalformed, kInvalid or kUnsupported with the JSON
// pointer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"

namespace railhead::resources {

inline constexpr const char* kSriovdpPrefix = "intel.com";

// `what` names the text in errors, of which the result has the first and `all` gets all.
// `default_prefix`: for resources without resourcePrefix.
Result<std::vector<ResourceSpec>> ParseSriovdpConfig(std::string_view text, const std::string& what,
                                                     const std::string& default_prefix,
                                                     std::vector<Error>* all = nullptr);

}  // namespace railhead::resources
