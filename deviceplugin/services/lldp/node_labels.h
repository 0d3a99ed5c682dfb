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

// A feature file of Node Feature Discovery's "local" source, with one NAME=VALUE per line. NFD ignores the
// file after `expires`.
std::string FeatureFile(const NodeLabels& labels, std::chrono::system_clock::time_point expires);
// Writes the file in one step. NFD reads all files of the directory except hidden ones, so it never sees a
// partial file. The directory must exist. Errors: kIo, kNotFound.
Result<void> WriteFeatureFile(const std::string& path, std::string_view content);

// NodeFeatures: keeps the node's labels up to date in a file for Node Feature Discovery.
//
// It writes the file with the first LldpReport, then after each change and each discovery. The file expires,
// so that a node without railheadd loses its labels.
// Ownership: borrows the log. Threads: thread-safe.

class NodeFeatures {
 public:
  // `path`: the file, below the root; "": none is written. `looks`: the longest time between two discoveries.
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

// Sets `cabling`, and `because` for a wrong one. An earlier `because` stays where no frame was heard.
void JudgeCabling(std::vector<RailNeighbor>& rails);

}  // namespace railhead::lldp
