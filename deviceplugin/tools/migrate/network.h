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
#include "deviceplugin/tools/migrate/key_outcomes.h"
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

}  // namespace railhead::migrate
