// NodeLabels: Kubernetes labels about a node's rails, for schedulers: how many rails, whether all are there,
// the kind of network, the switch and the VFs of each rail, and the distance to the GPUs.
// docs/operate/switch-ports.md lists them.
//
// Kubernetes allows 63 characters in a label's value and in its name behind the slash: letters, digits, '-',
// '_' and '.', a letter or digit first and last. What does not fit is made fit: other characters become '-',
// and eight hexadecimal digits of a hash of the whole are added, so that different things stay different.
// Threads: pure functions, but for ReadNodeLabels, which is thread-safe. Errors: those of what is read.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::lldp {

using NodeLabels = std::map<std::string, std::string>;  // "railhead.io/rails" -> "8"

inline constexpr std::size_t kMaxLabel = 63;
// A part of a label that means `text`; `max` characters at most, which must be 16 or more. "" stays "".
std::string KubernetesLabel(std::string_view text, std::size_t max = kMaxLabel);

NodeLabels NodeLabelsOf(const Fabric& fabric, const inventory::Inventory& inventory,
                        const topology::Topology& topology, const LldpReport& report);
// Of this node as it is now. kNotFound without a fabric.
Result<NodeLabels> ReadNodeLabels(const Root& root, const std::string& fabric_path = kFabricPath);

// A feature file of Node Feature Discovery's "local" source: a line NAME=VALUE each. NFD leaves it out once
// `expires` is over.
std::string FeatureFile(const NodeLabels& labels, std::chrono::system_clock::time_point expires);
// In one step, and so that NFD, which reads all files of the directory but hidden ones, sees nothing half
// written. The directory has to be there. kIo, kNotFound.
Result<void> WriteFeatureFile(const std::string& path, std::string_view content);

// NodeFeatures: the node's labels in a file for Node Feature Discovery, kept as the node is.
//
// It is first written with the first LldpReport, then after each change and each discovery. The file expires,
// so that a node without railheadd loses its labels.
// Ownership: borrows the log. Threads: thread-safe.

class NodeFeatures {
 public:
  // `path`: the file, below the root; "": none is written. `looks`: the time between two looks at most.
  NodeFeatures(Root root, std::string path, std::chrono::seconds looks, Log* log);

  void SetPlan(const resources::Plan& plan);
  void SetReport(const LldpReport& report);

 private:
  void Write();
  [[nodiscard]] Result<void> TryToWrite() const;

  const Root root_;
  const std::string path_;
  const std::chrono::seconds life_;
  Log* const log_;
  std::mutex mutex_;
  std::optional<resources::Plan> plan_;
  std::optional<LldpReport> report_;
  std::string complaint_;
};

// Compares each rail's switch with its `expectedSwitches` in fabric.json, and guesses which cables were mixed
// up.
//
// A pattern is one of fnmatch(3): * stands for any characters, ? for one, [abc] for one of these. Case
// matters, as it does to switches.
// Threads: pure functions.

bool MatchesSwitch(const std::vector<std::string>& patterns, const std::string& name);

// Sets `cabling`, and `because` of what is wrong. A `because` that is there already stays where nothing
// was heard.
void JudgeCabling(std::vector<RailNeighbor>& rails);

}  // namespace railhead::lldp
