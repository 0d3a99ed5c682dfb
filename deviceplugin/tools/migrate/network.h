// One NetworkAttachmentDefinition of the SR-IOV suite as Railhead's.
//
// A chain of sriov (or host-device), rdma, tuning and sbr becomes the one plugin railhead. It has all
// settings of the chain; other plugins stay in the chain behind it. Settings that all networks of a rail
// share move to the rail afterwards. Threads: values, pure functions. Errors: kInvalid, kMalformed, naming
// the document, when railhead or railhead-ipam would not accept the result.
#pragma once

#include <cstddef>
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
  std::string node;             // the node with these states and ranges; "": unknown
  std::string resource_prefix;  // of resources without one of their own
  // Of whereabouts' ranges each node gets a block, by an index that it claims in the Kubernetes API. 0: nodes
  // get none.
  std::size_t nodes = 0;  // that the subnets are to carry
  int vfs = 8;            // of a node, on each rail
};

// The settings of addresses that a rail can have.
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
  std::string resource;  // kubelet gives it devices from this; "": none
  OrderedJson metadata;
  OrderedJson list;                 // keys of the network outside its plugins
  OrderedJson entry;                // railhead's
  std::vector<OrderedJson> others;  // the plugins behind it
  bool listed = false;
  bool usable = true;  // the network can be written
  bool exclusive_rdma = false;
  // By key of `entry`: the place of its value in the document.
  std::map<std::string, std::string> origins;

  std::string ipam_at;                     // pointer of its ipam
  std::string ipam_type;                   // the original one
  std::string data_dir;                    // of host-local; "": its own default
  std::vector<IpPrefix> subnets;           // of its addresses
  std::optional<RailAddresses> addresses;  // nullopt: a rail cannot have them

  KeyOutcomes keys;
  std::vector<std::string> remarks;
};

// Whether the network is one of the SR-IOV suite's. Railhead does not touch others.
bool IsOfSuite(const NetworkDefinition& definition);
Result<Network> TranslateNetwork(const NetworkDefinition& definition, const Options& options);
// The configuration of railhead in it, as the runtime passes it.
std::string ConfigOf(const Network& network);
// As railhead and railhead-ipam read it.
Result<void> CheckNetwork(const Network& network);
// As `kubectl apply -f` takes it.
std::string NetworkAsText(const Network& network);

// The `policy` of fabric.json that migrated networks need. sriov-cni lets their authors set every key,
// railhead only with root's permission. Each network keeps the keys that it has set so far, and no other
// network gets them. Threads: pure function. Errors: those of reading the networks' configurations.

// Adds `policy` to the fabric if a network needs it, with one entry for each, and a remark to the network.
Result<void> AddPolicy(OrderedJson* fabric, std::vector<Network>* networks);

// Moves settings that the networks of one rail have in common to the rail.
//
// A rail sets VLAN, MTU and addresses for all its devices, whatever network attaches them. So a setting moves
// only if all networks of the rail have the same value. Their resource must also have devices of this rail
// only. Otherwise each network keeps its own settings, with the same effect.
// Threads: pure function.

// `fabric`: rails and pools. Changes those and the networks, and sets the outcomes of the keys.
void MoveToRails(const Options& options, OrderedJson* fabric, std::vector<Network>* networks);

// Translates the plugins of a chain of the SR-IOV suite, one by one, into the configuration of railhead.
//
// A key that railhead has under the same name is kept. A key for something that railhead does by itself is
// dropped. A key that neither railhead nor the plugin before it knows needs a decision. The rules for each
// key follow sriov-cni, rdma-cni, and containernetworking's tuning, sbr and host-device. Threads: pure
// functions.

// The first plugin of the chain, sriov or host-device, without its ipam and the keys of the network.
void TranslateMainPlugin(const DocumentSection& plugin, Network* network);
// The plugins behind it. A plugin that railhead cannot replace stays in the chain.
void TranslateChained(const DocumentSection& plugin, Network* network);

// Translates the ipam of a network of the SR-IOV suite to that of railhead-ipam.
//
// railhead-ipam has the fields of whereabouts and host-local under the same names; the report shows how a
// rail can have them instead. Other IPAM plugins are kept, except for those that need the interface in the
// pod: railhead calls the IPAM plugin before it moves a device. Threads: pure functions. Errors: as
// ReadIpamFields(), with the document.

// Fills in the ipam of `network`'s entry, its subnets and addresses.
Result<void> TranslateIpam(const DocumentSection& ipam, const Options& options, Network* network);
// Moves the addresses of the network's ipam to the rail at `rail` ("/rails/0").
void MoveAddressesToRail(const std::string& rail, const Options& options, Network* network);

// The report on addresses that host-local has allocated on a node: how pods keep them.
// Threads: pure function.

// Adds the commands for the node to `imports`.
DocumentReport ReportHeld(const HeldAddresses& held, const std::vector<Network>& networks,
                          std::vector<std::string>* imports);

}  // namespace railhead::migrate
