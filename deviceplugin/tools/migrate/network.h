// One NetworkAttachmentDefinition of the SR-IOV suite as Railhead's.
//
// A chain of sriov (or host-device), rdma, tuning and sbr becomes the one plugin railhead, whose
// configuration says by itself all that the chain said; other plugins stay in the chain behind it. What a
// rail could say for all its networks is moved there afterwards.
// Threads: values, pure functions. Errors: kInvalid, kMalformed, when the outcome would not be
// accepted by railhead or railhead-ipam, naming the document.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::migrate {

using OrderedJson = nlohmann::ordered_json;

struct Options {
  std::string node;             // whose state and ranges these are; "": not said
  std::string resource_prefix;  // of resources without one of their own
  bool lease_blocks = false;    // nodes lease blocks of addresses through the Kubernetes API
};

// What a rail can say of addresses.
struct RailAddresses {
  OrderedJson fields;  // subnet, gateway, routes, exclude, nodeRanges, nodeBlock
  bool operator==(const RailAddresses&) const = default;
};

struct Network {
  explicit Network(const nlohmann::json& document) : keys(document) {}

  std::string source;
  std::string space;
  std::string name;
  std::string network;   // its name in CNI
  std::string resource;  // which kubelet gives for it; "": none
  OrderedJson metadata;
  OrderedJson list;                 // keys of the network beside its plugins
  OrderedJson entry;                // railhead's
  std::vector<OrderedJson> others;  // behind it
  bool listed = false;
  bool usable = true;  // there is something to write
  bool exclusive_rdma = false;
  // Where what became a key of `entry` is in the document.
  std::map<std::string, std::string> origins;

  std::string ipam_at;                     // pointer of its ipam
  std::string ipam_type;                   // before
  std::string data_dir;                    // of host-local; "": its own default
  std::vector<IpPrefix> subnets;           // of its addresses
  std::optional<RailAddresses> addresses;  // nullopt: no rail can say it

  KeyLedger keys;
  std::vector<std::string> remarks;
};

// Whether it is one of the SR-IOV suite's; others are nothing of ours.
bool IsOfSuite(const NetworkDefinition& definition);
Result<Network> TranslateNetwork(const NetworkDefinition& definition, const Options& options);
// The configuration of railhead in it, as the runtime passes it.
std::string ConfigOf(const Network& network);
// As railhead and railhead-ipam read it.
Result<void> CheckNetwork(const Network& network);
// As `kubectl apply -f` takes it.
std::string NetworkAsText(const Network& network);

// What migrated networks need of fabric.json's `policy`: sriov-cni let their authors say everything, railhead
// asks root. What the networks said so far goes on being allowed to them, and to no others.
// Threads: pure function. Errors: those of reading the networks' configurations.

// Adds `policy` to the fabric if a network needs it, with one entry for each, and a remark to the network.
Result<void> AddPolicy(OrderedJson* fabric, std::vector<Network>* networks);

// What the networks of one rail have in common becomes the rail's.
//
// A rail says VLAN, MTU and addresses for all its devices, whatever network they are attached by. So
// they move there only when the rail's networks all say the same, and name a resource that is of this rail
// alone; otherwise each network goes on saying it by itself, which comes to the same.
// Threads: pure function.

// `fabric`: rails and pools. Changes those and the networks; says so in their ledgers.
void MoveToRails(const Options& options, OrderedJson* fabric, std::vector<Network>* networks);

// The plugins of a chain of the SR-IOV suite, one by one, into the configuration of railhead.
//
// What railhead knows under the same name keeps it; what it does by itself is dropped; what neither
// it nor the plugin before it knows is left to a decision. The rules for each key follow what
// sriov-cni, rdma-cni, and containernetworking's tuning, sbr and host-device make of it.
// Threads: pure functions.

// The first of the chain, sriov or host-device, but for its ipam and for what is the network's.
void TakeMainPlugin(const Section& plugin, Network* network);
// Those behind it: what cannot be railhead's stays in the chain.
void TakeChained(const Section& plugin, Network* network);

// The ipam of a network of the SR-IOV suite as railhead-ipam's.
//
// whereabouts' and host-local's fields are railhead-ipam's own under the same names; where one rail
// can say it, it is told how. Other IPAM plugins are asked as before, but for those that need the
// interface in the pod: railhead asks before it moves a device.
// Threads: pure functions. Errors: as ReadIpamFields(), with the document.

// Fills in the ipam of `network`'s entry, its subnets and addresses.
Result<void> TranslateIpam(const Section& ipam, const Options& options, Network* network);
// Has the rail at `rail` ("/rails/0") say what the network's ipam said.
void MoveAddressesToRail(const std::string& rail, const Options& options, Network* network);

// The addresses that host-local has given on a node: how they stay their pods'.
// Threads: pure function.

// Adds to `imports` what is to be run on the node.
DocumentReport ReportHeld(const HeldAddresses& held, const std::vector<Network>& networks,
                          std::vector<std::string>* imports);

}  // namespace railhead::migrate
