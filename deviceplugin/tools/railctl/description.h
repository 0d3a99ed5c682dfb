// Description: what `railctl describe WHAT` says of a device, pod, container or address of this node.
//
// DescribeSubject() only combines NodeRecords with the topology, the last tenants and the events of the
// address store. Unknown fields are empty. A source that could not be read is a note. Ownership: values.
// Threads: one. Errors: kNotFound for an address that no rail of this node has.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/tools/railctl/node_records.h"
#include "deviceplugin/tools/railctl/subject.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::railctl {

struct DescribedDevice {
  SubjectKind kind = SubjectKind::kPf;
  std::string device;
  std::string rail;
  std::string pf;       // PCI address
  std::string pf_name;  // its network device
  std::optional<int> vf;
  std::string netdev;  // on the host, also while a pod has the device
  std::string rdma_device;
  std::string driver;
  std::optional<int> numa_node;
  std::vector<std::string> gpus;  // the nearest ones: "GPU0 0000:1b:00.0 PIX"
  std::string switch_port;        // of its PF: "leaf1/Ethernet1/3"
  // Its holder; empty: it has none.
  std::string pod;
  std::string container;
  std::string network;
  std::string interface;
  std::optional<std::chrono::system_clock::time_point> held_since;
  bool unfinished = false;  // the holder's ADD has not finished
  std::vector<IpPrefix> addresses;
  std::optional<MacAddress> mac;  // in the pod, or on the host
  std::optional<int> vlan;        // as ADD sets it
  std::string last_pod;           // of a device that is free
  std::optional<bool> healthy;
  std::optional<std::chrono::system_clock::time_point> state_since;
  std::vector<health::HealthReason> reasons;
  std::optional<health::Drain> drain;  // its own or its PF's
  std::string not_offered;             // why kubelet does not get it

  static void List(auto& f) {
    using Device = DescribedDevice;
    f("device", &Device::device, {.column = "DEVICE"});
    f("kind", &Device::kind, {.column = "KIND", .wide = kWide});
    f("rail", &Device::rail, {.need = Need::kSparse, .column = "RAIL"});
    f("pf", &Device::pf, kSparseField);
    f("pfName", &Device::pf_name, {.need = Need::kSparse, .column = "PF", .wide = kWide});
    f("vf", &Device::vf, {.column = "VF", .wide = kWide});
    f("netdev", &Device::netdev, {.need = Need::kSparse, .column = "NETDEV", .wide = kWide});
    f("rdmaDevice", &Device::rdma_device, {.need = Need::kSparse, .column = "RDMA DEVICE"});
    f("driver", &Device::driver, {.need = Need::kSparse, .column = "DRIVER", .wide = kWide});
    f("numaNode", &Device::numa_node, {.column = "NUMA NODE", .wide = kWide});
    f("gpus", &Device::gpus, {.column = "NEAREST GPUS", .wide = kWide});
    f("switchPort", &Device::switch_port, {.need = Need::kSparse, .column = "SWITCH PORT", .wide = kWide});
    f("interface", &Device::interface, {.need = Need::kSparse, .column = "INTERFACE"});
    f("addresses", &Device::addresses, {.column = "ADDRESSES"});
    f("mac", &Device::mac, {.column = "MAC", .wide = kWide});
    f("vlan", &Device::vlan, {.column = "VLAN", .wide = kWide});
    f("healthy", &Device::healthy);
    f.Column("HEALTH", &Device::Health);
    f("stateSince", &Device::state_since, {.column = "STATE SINCE", .wide = kWide});
    f("reasons", &Device::reasons);
    f.Column(
        "REASON", [](const Device& it) { return health::TextOf(it.reasons); }, kWide);
    f("drain", &Device::drain);
    f.Column("DRAINED", &Device::DrainText, kWide);
    f("notOffered", &Device::not_offered, {.need = Need::kSparse, .column = "NOT OFFERED", .wide = kWide});
    f("pod", &Device::pod, {.need = Need::kSparse, .column = "POD"});
    f("container", &Device::container, {.need = Need::kSparse, .column = "CONTAINER", .wide = kWide});
    f("network", &Device::network, {.need = Need::kSparse, .column = "NETWORK", .wide = kWide});
    f("heldSince", &Device::held_since, {.column = "HELD SINCE", .wide = kWide});
    f("unfinished", &Device::unfinished, kSparseField);
    f.Column(
        "ADD", [](const Device& it) { return it.unfinished ? "not finished" : ""; }, kWide);
    f("lastPod", &Device::last_pod, {.need = Need::kSparse, .column = "LAST POD", .wide = kWide});
  }
  // "Healthy", "Unhealthy", ""
  [[nodiscard]] std::string Health() const;
  // "rail0: cable swap"
  [[nodiscard]] std::string DrainText() const;
};

struct DescribedPod {
  std::string pod;  // "": the runtime did not name it
  std::string uid;
  std::vector<std::string> containers;
  std::string netns;
  std::optional<std::chrono::system_clock::time_point> since;  // of its first attachment

  static void List(auto& f) {
    f("pod", &DescribedPod::pod, {.column = "POD"});
    f("uid", &DescribedPod::uid, {.need = Need::kSparse, .column = "UID"});
    f("containers", &DescribedPod::containers, {.column = "CONTAINERS"});
    f("netns", &DescribedPod::netns, {.need = Need::kSparse, .column = "NETNS"});
    f("since", &DescribedPod::since, {.column = "ATTACHED SINCE"});
  }
};

struct DescribedAddress {
  IpAddress address;
  // "held", "leaked", "cooling down", "quarantined", "free", "gateway", "probe address", "excluded", "other
  // node's", "no node's"
  std::string state;
  std::string rail;
  std::string pool;               // the subnet
  std::string range;              // of this node, that has it
  std::string node;               // in whose range it is, or whose probe address; "": not known
  std::optional<int> node_index;  // that node's
  std::string pod;
  // The holder, or of a released address the last one.
  std::string container;
  std::string network;
  std::string interface;
  std::optional<std::chrono::system_clock::time_point> since;
  std::optional<std::chrono::system_clock::time_point> until;  // it is not given out before
  std::string leak;
  std::vector<std::string> events;  // of the store, oldest first

  static void List(auto& f) {
    using Address = DescribedAddress;
    f("address", &Address::address, {.column = "ADDRESS"});
    f("state", &Address::state, {.column = "STATE"});
    f("rail", &Address::rail, {.need = Need::kSparse, .column = "RAIL"});
    f("pool", &Address::pool, {.need = Need::kSparse, .column = "POOL"});
    f("range", &Address::range, {.need = Need::kSparse, .column = "RANGE"});
    f("node", &Address::node, {.need = Need::kSparse, .column = "NODE"});
    f("nodeIndex", &Address::node_index, {.column = "NODE INDEX"});
    f("pod", &Address::pod, {.need = Need::kSparse, .column = "POD"});
    f("container", &Address::container, {.need = Need::kSparse, .column = "CONTAINER"});
    f("network", &Address::network, {.need = Need::kSparse, .column = "NETWORK"});
    f("interface", &Address::interface, {.need = Need::kSparse, .column = "INTERFACE"});
    f("since", &Address::since, {.column = "SINCE"});
    f("until", &Address::until);
    f.Column("UNTIL", &Address::UntilText);
    f("leak", &Address::leak, {.need = Need::kSparse, .column = "LEAK"});
    f("events", &Address::events);
  }
  // A time of day: an age says nothing of the future.
  [[nodiscard]] std::string UntilText() const;
};

struct Description {
  SubjectKind kind = SubjectKind::kRail;
  std::string name;
  std::optional<DescribedPod> pod;
  std::optional<DescribedAddress> address;
  // Of a rail or PF: the PF, then its VFs.
  std::vector<DescribedDevice> devices;
  std::vector<std::string> notes;

  static void List(auto& f) {
    f("kind", &Description::kind);
    f("name", &Description::name);
    f("pod", &Description::pod);
    f("address", &Description::address);
    f("devices", &Description::devices);
    f("notes", &Description::notes);
  }
};

Result<Description> DescribeSubject(const Root& root, const NodeRecords& records, const Subject& subject);

// What the records and the node's fabric say of an address; `node`: its name. nullopt: nothing.
std::optional<DescribedAddress> DescribeAddress(const NodeRecords& records, const std::string& node,
                                                const IpAddress& address);

}  // namespace railhead::railctl
