// NodeLabels: what schedulers may want to know of a node's rails, as labels of Kubernetes: how many there
// are, whether that is all, what kind of network they are, where they hang, how many VFs they have, and how
// near they are to the GPUs. docs/fabric-topology.md lists them.
//
// Kubernetes allows 63 characters in a label's value and in its name behind the slash: letters, digits, '-',
// '_' and '.', a letter or digit first and last. What does not fit is made fit: other characters become '-',
// and eight hexadecimal digits of a hash of the whole are added, so that different things stay different.
// Threads: pure functions, but for ReadNodeLabels, which is thread-safe. Errors: those of what is read.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

using NodeLabels = std::map<std::string, std::string>;  // "railhead.io/rails" -> "8"

inline constexpr std::size_t kMaxLabel = 63;
// A part of a label that means `text`; `max` characters at most, which must be 16 or more. "" stays "".
std::string KubernetesLabel(std::string_view text, std::size_t max = kMaxLabel);

NodeLabels NodeLabelsOf(const Fabric& fabric, const Inventory& inventory, const Topology& topology,
                        const LeafReport& leaves);
// Of this node as it is now. kNotFound without a fabric.
Result<NodeLabels> ReadNodeLabels(const Root& root, const std::string& fabric_path = kFabricPath);

// A feature file of Node Feature Discovery's "local" source: a line NAME=VALUE each. NFD leaves it out once
// `expires` is over.
std::string FeatureFile(const NodeLabels& labels, std::chrono::system_clock::time_point expires);
// In one step, and so that NFD, which reads all files of the directory but hidden ones, sees nothing half
// written. The directory has to be there. kIo, kNotFound.
Result<void> WriteFeatureFile(const std::string& path, std::string_view content);

}  // namespace railhead
