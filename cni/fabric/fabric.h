// fabric.json: the fabric of a node, described once, read by all parts. What people write may have groups of
// nodes (fabric_base.h): ReadFabric() gives the fabric of this node.
//
// docs/reference/fabric.md documents the shape. Reading checks everything that does not depend on this node's
// hardware. Subnet, gateway, ranges and exclusions must fit each other. Names must be unique, and ranges of
// different nodes disjoint. RailOfPf() finds the rail of a PF of this node. Threads: immutable value once
// read. Errors: kInvalid/kMalformed with the JSON pointer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/gateway.h"
#include "cni/fabric/index_range.h"
#include "cni/fabric/network_policy.h"
#include "cni/fabric/node_group.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead {

inline constexpr const char* kFabricPath = "/etc/railhead/fabric.json";
inline constexpr const char* kDefaultResource = "railhead.io/roce";
inline constexpr int kDefaultReuseDelaySeconds = 600;
inline constexpr int kDefaultMinReuseDelaySeconds = 60;
inline constexpr int kDefaultConflictProbeMs = 200;
inline constexpr std::uint32_t kFirstRailTable = 100;
inline constexpr int kMaxReuseDelaySeconds = 30 * 24 * 3600;
inline constexpr int kMinMtu = 68;
inline constexpr int kMaxMtu = 65535;

using NodeIndices = std::map<std::string, int>;  // by node name

// The first or the last address that a pod of the node could have.
enum class ProbePlace : std::uint8_t { kFirst, kLast };

template <>
struct Names<ProbePlace> {
  static constexpr std::array kAll = {std::pair{"first", ProbePlace::kFirst},
                                      std::pair{"last", ProbePlace::kLast}};
};

// Where a rail's routes lead: to the addresses that are written, to those of the rail on all nodes, or to
// those of all rails.
enum class RouteSource : std::uint8_t { kWritten, kRail, kRails };

struct Rail {
  std::string name;
  // Names or PCI addresses; the first that the node has. Empty: by position.
  std::vector<std::string> pfs;
  std::optional<int> position;
  std::optional<int> vlan;
  int vlan_qos = 0;
  std::optional<int> mtu;
  std::optional<IpPrefix> subnet;
  std::optional<Gateway> gateway;
  // Destinations behind the gateway; those of the fabric's rails are filled in once read.
  std::vector<IpPrefix> routes;
  RouteSource routes_from = RouteSource::kRail;
  std::vector<IpPrefix> fabric_subnets;  // of this rail on all nodes, if they are not `subnet` alone
  std::vector<IpRange> exclude;
  std::map<std::string, std::vector<IpRange>> node_ranges;  // by node name or index
  std::optional<int> node_block;                            // prefix length
  std::optional<int> node_subnet;                           // likewise, of a network that is the node's own
  std::optional<IndexRange> indices;  // of the nodes that divide the subnet; absent: all, from 0
  // This node's index on this rail. A busy rail keeps it while the node gets another index.
  std::optional<int> index;
  std::optional<int> traffic_class;  // the byte: DSCP << 2
  std::optional<int> service_level;
  bool soft_roce = false;
  // VFs send from their own MAC only, where the driver and the VF's MAC allow to ask for it.
  bool spoof_check = true;
  std::uint32_t table = 0;  // never 0 once read
  // Patterns (fnmatch(3)) of the switches that the rail may be connected to; empty: any.
  std::vector<std::string> expected_switches;
  // By node name: the addresses from which nodes probe the rail; never given to pods.
  std::map<std::string, IpAddress> probe_addresses;
  std::optional<IpRange> probe_range;     // instead: the node with index i has its i-th address
  std::optional<ProbePlace> probe_place;  // instead: one of each node's own addresses

  // Addresses that no pod gets: `exclude`, and the probe addresses but for those of `probe_place`.
  [[nodiscard]] std::vector<IpRange> Excluded() const;
  // Those of a node that hands out `ranges`, and its own probe address.
  [[nodiscard]] std::vector<IpRange> ExcludedFrom(const std::vector<IpRange>& ranges) const;
  // By `probe_place`. nullopt: the pods would have no address left.
  [[nodiscard]] std::optional<IpAddress> ProbeAddressAmong(const std::vector<IpRange>& ranges) const;
  // Whether it gives nodes addresses by their index.
  [[nodiscard]] bool UsesIndex() const;
  // Which part of the subnet is the one of the node with that index; nullopt: none is.
  [[nodiscard]] std::optional<int> PositionOf(int node_index) const;
  // The length of a node's part of the subnet; nullopt: it is not divided by index into parts of one size.
  [[nodiscard]] std::optional<int> PartLength() const { return node_subnet ? node_subnet : node_block; }
  // The network of a pod with that address of the subnet.
  [[nodiscard]] IpPrefix NetworkOf(const IpAddress& address) const;
  // The router of that network, if it has it.
  [[nodiscard]] std::optional<IpAddress> GatewayOf(const IpPrefix& network) const;
  // The addresses that node (`name`, `index`) may hand out; empty: none given.
  [[nodiscard]] std::vector<IpRange> RangesOf(const std::string& node, std::optional<int> node_index) const;
  // By node name. A node whose index is above the range has none.
  [[nodiscard]] std::map<std::string, IpAddress> ProbeAddressesOf(const NodeIndices& nodes) const;

  bool operator==(const Rail&) const = default;
};

enum class NcclConfigPolicy : std::uint8_t { kOff, kRequired };
// When a pod gets a topology file: if NCCL would misplace one of its NICs, always, or never.
enum class TopologyPolicy : std::uint8_t { kNever, kNeeded, kAlways };
// Stacks besides NCCL that get the NCCL configuration.
enum class CommunicationStack : std::uint8_t { kRccl, kUcx, kNvshmem, kGloo, kOpenMpi };
// The largest distance between GPU and NIC for GPUDirect RDMA (NCCL_NET_GDR_LEVEL).
enum class GdrLevel : std::uint8_t { kLoc, kPix, kPxb, kP2c, kPhb, kSys };

// Variables of NCCL whose values are checked.
struct NcclTuning {
  std::optional<int> timeout;
  std::optional<int> retry_count;
  std::optional<int> qps_per_connection;
  std::optional<int> fifo_traffic_class;
  std::optional<int> relaxed_ordering;
  std::optional<int> cross_nic;
  std::optional<bool> split_data_on_qps;
  std::optional<bool> adaptive_routing;
  std::optional<GdrLevel> gdr_level;

  // As lines of nccl.conf.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> Lines() const;

  bool operator==(const NcclTuning&) const = default;
};

// What the NCCL configurations of all pods have in common.
struct NcclConfigOptions {
  TopologyPolicy topology = TopologyPolicy::kNeeded;
  std::set<CommunicationStack> stacks = {CommunicationStack::kRccl};  // rccl costs only one more mount
  NcclTuning nccl;
  std::vector<std::pair<std::string, std::string>> env;  // further lines of nccl.conf, unchanged

  // nccl's, then env's.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> Lines() const;

  bool operator==(const NcclConfigOptions&) const = default;
};
enum class DeviceNodeMode : std::uint8_t { kCdi, kMount };

template <>
struct Names<NcclConfigPolicy> {
  static constexpr std::array kAll = {std::pair{"required", NcclConfigPolicy::kRequired},
                                      std::pair{"off", NcclConfigPolicy::kOff}};
};

template <>
struct Names<TopologyPolicy> {
  static constexpr std::array kAll = {std::pair{"never", TopologyPolicy::kNever},
                                      std::pair{"needed", TopologyPolicy::kNeeded},
                                      std::pair{"always", TopologyPolicy::kAlways}};
};

template <>
struct Names<CommunicationStack> {
  static constexpr std::array kAll = {
      std::pair{"rccl", CommunicationStack::kRccl}, std::pair{"ucx", CommunicationStack::kUcx},
      std::pair{"nvshmem", CommunicationStack::kNvshmem}, std::pair{"gloo", CommunicationStack::kGloo},
      std::pair{"openmpi", CommunicationStack::kOpenMpi}};
};

template <>
struct Names<GdrLevel> {
  static constexpr std::array kAll = {std::pair{"LOC", GdrLevel::kLoc}, std::pair{"PIX", GdrLevel::kPix},
                                      std::pair{"PXB", GdrLevel::kPxb}, std::pair{"P2C", GdrLevel::kP2c},
                                      std::pair{"PHB", GdrLevel::kPhb}, std::pair{"SYS", GdrLevel::kSys}};
};

template <>
struct Names<DeviceNodeMode> {
  static constexpr std::array kAll = {std::pair{"cdi", DeviceNodeMode::kCdi},
                                      std::pair{"mount", DeviceNodeMode::kMount}};
};

enum class PoolDevice : std::uint8_t { kVf, kPf };

template <>
struct Names<PoolDevice> {
  static constexpr std::array kAll = {std::pair{"vf", PoolDevice::kVf}, std::pair{"pf", PoolDevice::kPf}};
};

struct Pool {
  std::string resource;  // "railhead.io/roce"
  std::vector<std::string> rails;
  PoolDevice device = PoolDevice::kVf;
  std::optional<NcclConfigPolicy> nccl_config;  // never empty once read
  DeviceNodeMode device_nodes = DeviceNodeMode::kCdi;
  bool late = false;  // kubelet gives out slots, which ADD binds to devices

  bool operator==(const Pool&) const = default;
};

// Which address of a node's range comes next: as ipam/store/range.h says, or always the one of the VF's
// index.
enum class AddressPolicy : std::uint8_t { kIncrement, kDeterministic };

template <>
struct Names<AddressPolicy> {
  static constexpr std::array kAll = {std::pair{"increment", AddressPolicy::kIncrement},
                                      std::pair{"deterministic", AddressPolicy::kDeterministic}};
};

struct Fabric {
  std::vector<Rail> rails;
  NodeIndices nodes;
  AddressPolicy address_policy = AddressPolicy::kIncrement;
  std::optional<int> reuse_delay_seconds;                      // never empty once read
  int min_reuse_delay_seconds = kDefaultMinReuseDelaySeconds;  // if no other address is free
  int conflict_probe_ms = kDefaultConflictProbeMs;             // 0: addresses are used unprobed
  std::optional<bool> rdma_exclusive;                          // the RDMA namespace mode that nodes must have
  NcclConfigPolicy nccl_config = NcclConfigPolicy::kRequired;
  NcclConfigOptions nccl_config_options;
  std::vector<Pool> pools;  // never empty when there are rails
  NetworkPolicy policy;
  // addresses.index: JSON as it stands there, railheadd's to read; "": not given.
  std::string address_index;
  bool index_from_kubernetes = false;
  std::string health;                  // JSON as it stands there, railheadd's to read; "": not given
  std::string provision;               // likewise; railctl's too
  std::string reachability;            // likewise
  std::string node_status;             // as health
  std::vector<NodeGroup> node_groups;  // of a base; the fabric of a node has none
  std::optional<FabricNode> of_node;   // whose fabric this is, if its base has groups

  // Whether a rail gives nodes addresses by their index.
  [[nodiscard]] bool UsesIndices() const;
  // Whether nodes claim their index, because `nodes` gives none (node_index.h).
  [[nodiscard]] bool ClaimsIndices() const { return index_from_kubernetes && nodes.empty() && UsesIndices(); }
  [[nodiscard]] const Rail* FindRail(const std::string& name) const;
  [[nodiscard]] std::optional<int> IndexOf(const std::string& node) const;

  // The rail of a PF of this node: by name, by address, else by position among
  // `pfs_in_order` (BDFs in PCI order).
  [[nodiscard]] const Rail* RailOfPf(const std::string& pf_name, const std::string& pf_bdf,
                                     const std::vector<std::string>& pfs_in_order) const;

  bool operator==(const Fabric&) const = default;
};

// `what` names the text in errors, of which the result has the first and `all` gets all.
Result<Fabric> ParseFabric(const std::string& text, const std::string& what,
                           std::vector<Error>* all = nullptr);
// The fabric of this node, also by a file with groups. nullopt when the file does not exist. `path` is taken
// below `root`.
Result<std::optional<Fabric>> ReadFabric(const Root& root, const std::string& path = kFabricPath);

}  // namespace railhead
