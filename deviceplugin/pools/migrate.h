// From sriov-network-device-plugin's config.json to a fabric.json to begin with.
//
// The PFs that pfNames and rootDevices name become rails, in the order in which they are
// named, and the resources pools over them. Nothing is made up: VLANs, subnets and MTUs
// are in no config.json and are left out. What cannot be carried over is told.
// Threads: pure function. Errors: those of ParseSriovdpConfig(), and kUnsupported, with
// all the reasons, when no resource names a PF.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

struct Migration {
  std::string fabric;  // fabric.json, which ParseFabric() takes
  // What was left behind or has to be filled in, a line each: "/resourceList/0
  // (intel.com/net): ...".
  std::vector<std::string> notes;
};

Result<Migration> MigrateSriovdpConfig(std::string_view text, const std::string& what,
                                       const std::string& default_prefix);

}  // namespace railhead
