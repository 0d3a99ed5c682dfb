// NodeReport: what `railctl topo` shows of a node, for people and programs.
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
#include "netns/json/record.h"

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

  [[nodiscard]] std::vector<std::string> VfsInUse() const;  // their ids
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

// The same for programs, and the lines of the text's tables.

// A device's host bridge, then each bridge above it: of a path in sysfs.
std::vector<std::string> BridgesOf(const std::string& path);
// "10de"
std::string HexText(std::uint16_t number);

struct ShownAccelerator {
  std::string name;  // "GPU0"
  Accelerator device;
  std::string uuid;

  static void List(auto& f) {
    f("name", &ShownAccelerator::name, {.column = "NAME"});
    f.Part(&ShownAccelerator::device, [](auto& part) {
      part.Shown("address", [](const Accelerator& it) { return it.address.ToString(); },
                 {.column = "ADDRESS"});
      part.Shown("vendor", [](const Accelerator& it) { return HexText(it.vendor); });
      part.Shown("device", [](const Accelerator& it) { return HexText(it.device); });
      part.Column("ID", [](const Accelerator& it) { return HexText(it.vendor) + ":" + HexText(it.device); });
      part("driver", &Accelerator::driver, {.column = "DRIVER"});
      part("numaNode", &Accelerator::numa_node, kNullField);
      part.Shown("bridges", [](const Accelerator& it) { return BridgesOf(it.path); });
    });
    f("uuid", &ShownAccelerator::uuid, {.need = Need::kSparse, .column = "UUID"});
  }
};

struct ShownNic {
  std::string name;  // "NIC0"
  topology::TopologyNic nic;
  NicUse use;

  static void List(auto& f) {
    f("name", &ShownNic::name, {.column = "NAME"});
    f.Part(&ShownNic::nic, [](auto& part) {
      using Nic = topology::TopologyNic;
      part.Shown("address", [](const Nic& it) { return it.address.ToString(); }, {.column = "ADDRESS"});
      part("netdev", &Nic::netdev, {.column = "NETDEV"});
      part("rdmaDevice", &Nic::rdma_device, {.column = "RDMA"});
      part("numaNode", &Nic::numa_node, kNullField);
      part.Shown("bridges", [](const Nic& it) { return BridgesOf(it.path); });
    });
    f.Part(&ShownNic::use, [](auto& part) {
      part("rail", &NicUse::rail, {.need = Need::kSparse, .column = "RAIL"});
      part("vlan", &NicUse::vlan, {.column = "VLAN"});
      part("inUse", &NicUse::in_use);
      part.Shown("vfs", [](const NicUse& it) { return it.vfs.size(); }, {.column = "VFS"});
      part.Column("IN USE", [](const NicUse& it) {
        return it.in_use ? "itself" : std::to_string(it.VfsInUse().size());
      });
      part.Shown("vfsFree", [](const NicUse& it) { return it.vfs.size() - it.VfsInUse().size(); },
                 {.column = "FREE"});
      part.Shown("vfsInUse", &NicUse::VfsInUse);
    });
  }
};

// In the shape of topology.json.
struct ShownPath {
  std::string nic;
  std::string accelerator;
  std::string path;

  static void List(auto& f) {
    f("nic", &ShownPath::nic);
    f("accelerator", &ShownPath::accelerator);
    f("path", &ShownPath::path);
  }
};

// Each pair once.
struct ShownPair {
  std::vector<std::string> between;
  std::string path;

  static void List(auto& f) {
    f("between", &ShownPair::between);
    f("path", &ShownPair::path);
  }
};

struct ShownNode {
  std::string node;
  std::vector<ShownAccelerator> accelerators;
  std::vector<ShownNic> nics;
  std::vector<ShownPath> paths;
  std::vector<ShownPair> accelerator_paths;
  std::vector<ShownPair> nic_paths;
  std::vector<std::string> notes;

  static void List(auto& f) {
    f("node", &ShownNode::node);
    f("accelerators", &ShownNode::accelerators);
    f("nics", &ShownNode::nics);
    f("paths", &ShownNode::paths);
    f("acceleratorPaths", &ShownNode::accelerator_paths);
    f("nicPaths", &ShownNode::nic_paths);
    f("notes", &ShownNode::notes);
  }
};

ShownNode Shown(const NodeReport& report);

}  // namespace railhead::topology_view
