// One NetworkAttachmentDefinition of the SR-IOV suite as Railhead's.
//
// A chain of sriov (or host-device), rdma, tuning and sbr becomes the one plugin railhead, whose
// configuration says by itself all that the chain said; other plugins stay in the chain behind it. What a
// rail could say for all its networks is moved there afterwards: rails.h.
// Threads: values, pure functions. Errors: kInvalid, kMalformed, when the outcome would not be
// accepted by railhead or railhead-ipam, naming the document.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "deviceplugin/tools/migrate/report.h"
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

}  // namespace railhead::migrate
