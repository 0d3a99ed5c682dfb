// NodeObservation: what one node shows of the PFs that may carry rails.
//
// `railctl fabric suggest -o json` prints it on a node, and `railctl fabric suggest FILE...` reads those of
// many nodes. Observe() asks sysfs and the kernel, and changes nothing. LLDP neighbors come from railheadd's
// current report. A node without fabric.json has no such report, so Observe() can also listen for LLDP frames
// itself. Threads: values; Observe() is thread-safe, as Kernel is. Errors: kMalformed and kInvalid for a
// wrong topology.json, else where the node could not be asked. A missing permission to listen is a note, no
// error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/lldp/lldp_report.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/kernel.h"
#include "netns/packet/lldp_neighbor.h"

namespace railhead::fabric_suggest {

// A route of the host through a gateway.
struct ObservedRoute {
  IpPrefix destination;  // length 0: default
  IpAddress gateway;
  std::uint32_t table = 0;

  auto operator<=>(const ObservedRoute&) const = default;

  static void List(auto& f) {
    f("destination", &ObservedRoute::destination, kRequiredField);
    f("gateway", &ObservedRoute::gateway, kRequiredField);
    f("table", &ObservedRoute::table);
  }
};

// A network that the host itself has on a PF: untagged, or on a VLAN device.
struct ObservedNetwork {
  std::optional<int> vlan;  // of the VLAN device; nullopt: the PF's own netdev
  std::string netdev;
  std::vector<IpPrefix> addresses;  // with host bits; without link-local ones
  std::vector<ObservedRoute> routes;

  bool operator==(const ObservedNetwork&) const = default;

  static void List(auto& f) {
    f("vlan", &ObservedNetwork::vlan, {.min = 1, .max = 4094});
    f("netdev", &ObservedNetwork::netdev);
    f("addresses", &ObservedNetwork::addresses, kSparseField);
    f("routes", &ObservedNetwork::routes, kSparseField);
  }
};

struct ObservedPf {
  std::string device;  // PCI address
  std::string netdev;  // also while it is in a pod; "": unknown
  std::string rdma;    // RDMA device; "": it has none, or it is in a pod (exclusive mode)
  bool is_rdma = false;
  bool soft_roce = false;  // it has RDMA, but only by a soft RoCE device
  std::string driver;
  std::string link_type;  // "ether", "infiniband"; "": unknown
  std::optional<int> numa_node;
  bool several_ports = false;  // it has more than one netdev, which no pool gives out
  int vfs = 0;                 // sriov_numvfs
  int most_vfs = 0;            // sriov_totalvfs; 0: no SR-IOV
  std::string accelerator;     // PCI address of the nearest one; "": the node has none
  std::string path;            // to it, in the words of PciPath: "PIX"
  bool here = false;           // its netdev is in the host's netns
  bool up = false;
  bool carrier = false;
  std::optional<int> mtu;
  std::string master;  // bond or bridge above it; "": none
  // It carries the host's default route or the node's address, perhaps below a bond or VLAN.
  bool default_route = false;
  std::optional<int> vf_vlan;  // of VF 0, if it has one
  std::vector<ObservedNetwork> networks;
  std::optional<LldpNeighbor> neighbor;

  bool operator==(const ObservedPf&) const = default;
};

struct NodeObservation {
  std::string node;  // as Kubernetes knows it
  std::chrono::system_clock::time_point time;
  int accelerators = 0;
  std::vector<ObservedPf> pfs;  // with RDMA or SR-IOV, in PCI order: a position in fabric.json counts these
  std::vector<std::string> notes;  // sentences about what could not be observed

  bool operator==(const NodeObservation&) const = default;
};

struct ObserveOptions {
  // How long to listen for LLDP frames on PFs that railheadd has no neighbor of. It ends when all were heard.
  std::chrono::seconds listen{0};
};

Result<NodeObservation> Observe(const Root& root, Kernel& kernel, const ObserveOptions& options = {});

// /proc/net/vlan/config: the VLAN devices of the reader's netns. Lines that the kernel never writes are
// ignored.
struct VlanDevice {
  std::string netdev;
  int vlan = 0;
  std::string lower;
};
std::vector<VlanDevice> ParseVlanConfig(std::string_view text);

}  // namespace railhead::fabric_suggest

template <>
struct railhead::Shape<railhead::fabric_suggest::ObservedPf> {
  using Pf = fabric_suggest::ObservedPf;
  static void List(auto& f) {
    f("device", &Pf::device, kRequiredField);
    f("netdev", &Pf::netdev);
    f("rdmaDevice", &Pf::rdma);
    f("rdma", &Pf::is_rdma);
    f("softRoce", &Pf::soft_roce, kSparseField);
    f("driver", &Pf::driver);
    f("linkType", &Pf::link_type);
    f("numa", &Pf::numa_node);
    f("severalPorts", &Pf::several_ports, kSparseField);
    f("vfs", &Pf::vfs, {.min = 0, .max = 65535});
    f("mostVfs", &Pf::most_vfs, {.min = 0, .max = 65535});
    f("accelerator", &Pf::accelerator, kSparseField);
    f("path", &Pf::path, kSparseField);
    f("inHostNetns", &Pf::here);
    f("up", &Pf::up);
    f("carrier", &Pf::carrier);
    f("mtu", &Pf::mtu, {.min = 0});
    f("master", &Pf::master, kSparseField);
    f("defaultRoute", &Pf::default_route, kSparseField);
    f("vfVlan", &Pf::vf_vlan, {.min = 1, .max = 4094});
    f("networks", &Pf::networks, kSparseField);
    f("lldp", &Pf::neighbor);
  }
  static std::string Key(const Pf& pf) { return pf.device; }
};

template <>
struct railhead::Shape<railhead::fabric_suggest::NodeObservation> {
  using T = fabric_suggest::NodeObservation;
  static void List(auto& f) {
    f("node", &T::node, kRequiredField);
    f("time", &T::time);
    f("accelerators", &T::accelerators, {.min = 0});
    f("pfs", &T::pfs);
    f("notes", &T::notes, kSparseField);
  }
  static std::string Key(const T& observation) { return observation.node; }
};
