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

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/json_reader.h"

namespace railhead::resources {

inline constexpr const char* kSriovdpPrefix = "intel.com";

// `what` names the text in errors, of which the result has the first and `all` gets all.
// `default_prefix`: for resources without resourcePrefix.
Result<std::vector<ResourceSpec>> ParseSriovdpConfig(std::string_view text, const std::string& what,
                                                     const std::string& default_prefix,
                                                     std::vector<Error>* all = nullptr);

// The selectors of sriov-network-device-plugin's config.json: for sriovdp_config.cc.
//
// Threads: pure functions. Errors stick in the reader, with the JSON pointer.

// A reader's keys as they are spelt in the text, found by their names in any case.
class AnyCase {
 public:
  explicit AnyCase(JsonReader* reader);
  [[nodiscard]] std::string operator()(const std::string& name) const;

 private:
  std::map<std::string, std::string> spelling_;
};

// Reads one whole selector object of a resource of deviceType `kind`.
Selector ReadSelector(JsonReader* reader, inventory::FunctionKind kind);

// Whether a file is a configuration, and what this node would make from the file.
//
// The file is read as railheadd would read it: as sriov-network-device-plugin's config.json or as
// fabric.json, whichever its keys show. Threads: reads the file system only. Errors: those of MakePlan();
// kInvalid for a file that is neither.

Result<ConfigSource> DetectConfig(const Root& root, const std::string& path,
                                  const std::string& resource_prefix);

// For people: a line per resource with its devices, then the functions that are not in any, with the reason.
std::string PlanAsText(const Plan& plan);

}  // namespace railhead::resources
