// topology.json: what sysfs does not say, or says wrongly, about a node's topology.
//
//   { "paths": [ {"nic": "0000:43:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"} ],
//     "accelerators": { "vendors": ["10de", "8086:0380"], "ids": {"some-id": "0000:1b:00.0"} } }
//
// For virtual machines, whose PCI tree is made up, and for platforms where GPU and NIC meet elsewhere than on
// PCI (C2C). Every field is optional, and so is the file. `nic` is a PF, which stands for its VFs, or a VF
// whose PF the node does not have. `vendors` replaces the default list; an entry is a vendor, or a vendor and
// a PCI class. `railctl topology -o json` prints "paths" in this shape. Functions that a node lacks are
// accepted: one file may serve several kinds of nodes. Threads: value. Errors: kMalformed or kInvalid with
// the JSON pointer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/accelerators.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::topology {

inline constexpr const char* kTopologyPath = "/etc/railhead/topology.json";

struct PathOverride {
  PciAddress nic;
  PciAddress accelerator;
  PciPath path = PciPath::kSys;
};

struct TopologyConfig {
  std::vector<PathOverride> paths;
  AcceleratorRules accelerators;
};

// `what` names the text in errors.
Result<TopologyConfig> ParseTopologyConfig(std::string_view text, const std::string& what);
// Without the file, the defaults. `path` is taken below `root`.
Result<TopologyConfig> ReadTopologyConfig(const Root& root, const std::string& path = kTopologyPath);

}  // namespace railhead::topology
