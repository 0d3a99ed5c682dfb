// NodeReport: what `railctl topo` shows of a node, as text, JSON and a picture.
//
// The topology, and what is known of each NIC from fabric.json (rail, VLAN) and from the
// journal of attachments (which VFs are in use).
// Threads: ReadNodeReport() is thread-safe; a report is a value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/topology/topology.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::topology_view {

struct ReportedVf {
  int index = 0;
  std::string id;  // its PCI address
  bool in_use = false;
};

struct NicUse {
  std::string rail;             // "" when it is on none
  std::optional<int> vlan;      // of the rail
  bool in_use = false;          // the NIC itself is in a pod
  std::vector<ReportedVf> vfs;  // in the order of their index

  [[nodiscard]] int InUse() const;
};

struct NodeReport {
  std::string node;  // as Kubernetes knows it
  std::shared_ptr<const topology::Topology> topology;
  std::vector<std::string> uuids;  // of each accelerator; "" for none
  std::vector<NicUse> nics;        // of each NIC
  // What could not be told, and what topology.json says in vain. Sentences.
  std::vector<std::string> notes;
};

// A broken fabric.json or topology.json is an error (kMalformed, kInvalid).
Result<NodeReport> ReadNodeReport(const Root& root);

// In the manner of `nvidia-smi topo -m`, for a terminal; ends with a newline.
std::string ReportText(const NodeReport& report);

// {"node", "accelerators": [...], "nics": [...], "paths": [...], "acceleratorPaths": [...],
// "nicPaths": [...], "notes": [...]}; "paths" in the shape of topology.json. Indented.
std::string ReportJson(const NodeReport& report);

}  // namespace railhead::topology_view
