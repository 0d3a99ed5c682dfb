// NodeLabels: Kubernetes labels about a node's rails, for schedulers. They state how many rails exist,
// whether all are there, and the kind of network. They also state the switch and the VFs of each rail, and
// the distance to the GPUs. docs/reference/kubernetes.md lists them. A switch is stated only where no VF
// could have sent the frame that names it: on rails with a VLAN, and of PFs without VFs.
//
// A label's value, and its name behind the slash, have at most 63 characters in Kubernetes. They are letters,
// digits, '-', '_' and '.', with a letter or digit first and last. In text that does not fit, other
// characters become '-'. Eight hexadecimal digits of a hash of the whole text follow, so that different texts
// stay different.
// Threads: pure functions, but for ReadNodeLabels, which is thread-safe. Errors: those of the parts it reads.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::lldp {

using NodeLabels = std::map<std::string, std::string>;  // "railhead.io/rails" -> "8"

inline constexpr std::size_t kMaxLabel = 63;
// A part of a label that means `text`; `max` characters at most, which must be 16 or more. "" stays "".
std::string KubernetesLabel(std::string_view text, std::size_t max = kMaxLabel);

NodeLabels NodeLabelsOf(const Fabric& fabric, const inventory::Inventory& inventory,
                        const topology::Topology& topology, const LldpReport& report);
// Of this node in its present state. kNotFound without a fabric.
Result<NodeLabels> ReadNodeLabels(const Root& root, const std::string& fabric_path = kFabricPath);

}  // namespace railhead::lldp
