// The `ipam` object of a network configuration, resolved into pools.
//
// A pool comes either by `rail`: subnet, this node's range, exclusions, gateway,
// routes and reuse delay from fabric.json; or inline, by `subnet`. With `links` there
// is one for each of them, and a rail's routes are left to the fabric's reader.
// Reads files, changes nothing.
// Errors: kMalformed, kInvalid with the JSON pointer and what to do. A rail
// without a range for this node is kInvalid: guessing one would hand out
// another node's addresses.
// Threads: pure but for reading files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/cni_result.h"
#include "ipam/plugin/fixed_addresses.h"
#include "ipam/store/store.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::ipam {

struct PoolChoice {
  AddressPool pool;
  std::optional<IpAddress> gateway;
};

// One address to be given.
struct AddressPlan {
  std::string ifname;                      // of the link; empty without `links`: the attachment itself
  std::vector<PoolChoice> choices;         // never empty; alternatives in their order
  std::optional<IpAddress> fixed_address;  // this address or none
  std::optional<MacAddress> mac;           // of the interface, where it is known
  bool deterministic = false;              // by the fabric's policy `fixed_address` alone can be allocated
  std::vector<CniRoute> routes;
  std::string where;  // "network configuration: /ipam/links/0", for messages
};

struct IpamPlan {
  bool listed = false;                 // by `links`
  std::vector<AddressPlan> addresses;  // in the order of the configuration
  std::vector<CniIp> also;             // in every answer, for any caller
  std::string dns;                     // for the answer, a JSON object; empty: none
};

// `config` is the whole network configuration as the runtime sent it, `args` CNI_ARGS. Without rail, subnet
// and links the plan has no addresses: STATUS below railhead may get such a configuration.
Result<IpamPlan> ResolveIpam(const std::string& config, const CniArgs& args, const Root& root);

// The same, but requires at least one address, and every address that the fabric's policy fixes must be
// known.
Result<IpamPlan> ResolvePools(const std::string& config, const CniArgs& args, const Root& root);

}  // namespace railhead::ipam
