// NodeReport: what `railctl topology` shows of a node, for people and programs.
//
// The topology, and each NIC's data from fabric.json (rail, VLAN) and from the journal of attachments (which
// VFs are in use).
// Threads: ReadNodeReport() is thread-safe; a report is a value.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/topology/topology.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::topology_view {

struct ReportedVf {
  int index = 0;
  std::string id;  // its PCI address
  bool in_use = false;
};

struct NicUse {
  std::string rail;             // "" without a rail
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
  std::vector<std::size_t> shown;  // indices of the NICs that text and view have; after reading: all
  // Sentences about missing facts, and about entries of topology.json without effect.
  std::vector<std::string> notes;
};

// A broken fabric.json or topology.json is an error (kMalformed, kInvalid).
Result<NodeReport> ReadNodeReport(const Root& root);

// In the manner of `nvidia-smi topo -m`, for a terminal; ends with a newline.
std::string ReportText(const NodeReport& report);

// The same for programs, and the lines of the text's tables.

// A device's host bridge, then each bridge above it, from a path in sysfs.
std::vector<std::string> BridgesOf(const std::string& path);
// "10de"
std::string HexText(std::uint16_t number);

struct AcceleratorView {
  std::string name;  // "GPU0"
  Accelerator device;
  std::string uuid;

  static void List(auto& f) {
    f("name", &AcceleratorView::name, {.column = "NAME"});
    f.Part(&AcceleratorView::device, [](auto& part) {
      part.Output("address", [](const Accelerator& it) { return it.address.ToString(); },
                  {.column = "ADDRESS"});
      part.Output("vendor", [](const Accelerator& it) { return HexText(it.vendor); });
      part.Output("device", [](const Accelerator& it) { return HexText(it.device); });
      part.Column("ID", [](const Accelerator& it) { return HexText(it.vendor) + ":" + HexText(it.device); });
      part("driver", &Accelerator::driver, {.column = "DRIVER"});
      part("numaNode", &Accelerator::numa_node, kNullField);
      part.Output("bridges", [](const Accelerator& it) { return BridgesOf(it.path); });
    });
    f("uuid", &AcceleratorView::uuid, {.need = Need::kSparse, .column = "UUID"});
  }
};

struct NicView {
  std::string name;  // "NIC0"
  topology::TopologyNic nic;
  NicUse use;

  static void List(auto& f) {
    f("name", &NicView::name, {.column = "NAME"});
    f.Part(&NicView::nic, [](auto& part) {
      using Nic = topology::TopologyNic;
      part.Output("address", [](const Nic& it) { return it.address.ToString(); }, {.column = "ADDRESS"});
      part("netdev", &Nic::netdev, {.column = "NETDEV"});
      part("rdmaDevice", &Nic::rdma_device, {.column = "RDMA"});
      part("numaNode", &Nic::numa_node, kNullField);
      part.Output("bridges", [](const Nic& it) { return BridgesOf(it.path); });
    });
    f.Part(&NicView::use, [](auto& part) {
      part("rail", &NicUse::rail, {.need = Need::kSparse, .column = "RAIL"});
      part("vlan", &NicUse::vlan, {.column = "VLAN"});
      part("inUse", &NicUse::in_use);
      part.Output("vfs", [](const NicUse& it) { return it.vfs.size(); }, {.column = "VFS"});
      part.Column("IN USE", [](const NicUse& it) {
        return it.in_use ? "itself" : std::to_string(it.VfsInUse().size());
      });
      part.Output("vfsFree", [](const NicUse& it) { return it.vfs.size() - it.VfsInUse().size(); },
                  {.column = "FREE"});
      part.Output("vfsInUse", &NicUse::VfsInUse);
    });
  }
};

// In the shape of topology.json.
struct PathView {
  std::string nic;
  std::string accelerator;
  std::string path;

  static void List(auto& f) {
    f("nic", &PathView::nic);
    f("accelerator", &PathView::accelerator);
    f("path", &PathView::path);
  }
};

// Each pair once.
struct PairView {
  std::vector<std::string> between;
  std::string path;

  static void List(auto& f) {
    f("between", &PairView::between);
    f("path", &PairView::path);
  }
};

struct NodeView {
  std::string node;
  std::vector<AcceleratorView> accelerators;
  std::vector<NicView> nics;
  std::vector<PathView> paths;
  std::vector<PairView> accelerator_paths;
  std::vector<PairView> nic_paths;
  std::vector<std::string> notes;

  static void List(auto& f) {
    f("node", &NodeView::node);
    f("accelerators", &NodeView::accelerators);
    f("nics", &NodeView::nics);
    f("paths", &NodeView::paths);
    f("acceleratorPaths", &NodeView::accelerator_paths);
    f("nicPaths", &NodeView::nic_paths);
    f("notes", &NodeView::notes);
  }
};

NodeView ViewOf(const NodeReport& report);

}  // namespace railhead::topology_view
