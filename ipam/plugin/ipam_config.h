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
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/protocol/cni_result.h"
#include "ipam/plugin/fields.h"
#include "ipam/plugin/ipam_plugin.h"
#include "ipam/store/store.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

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

// A resolv.conf as the `dns` object of a CNI result.
// Errors: kNotFound when the file is not there, otherwise by errno. Threads: pure but for
// reading the file. Source: resolv.conf(5).

// `path` is taken below `root`. {"nameservers": [...], "domain": "...", "search": [...], "options": [...]}
Result<std::string> DnsOfResolvConf(const Root& root, const std::string& path);

// The fabric and this node's place in it, for what a configuration asks of them.
// Reads each file once, and only when it is needed.
// Ownership: borrows the root. Errors: as ReadFabric() and NodeName(); kInvalid when the fabric
// does not say what is needed, with what to write. Threads: none.

class FabricSource {
 public:
  FabricSource(const Root& root, std::string path) : root_(root), path_(std::move(path)) {}

  // nullptr: the node has no fabric.
  Result<const Fabric*> IfThere();
  // For `fields`, which names a rail.
  Result<const Fabric*> For(const PoolFields& fields);
  // This node's name, as fabrics know it.
  Result<std::string> Node();
  // This node's index; nullopt: nothing gives it one. Errors: as IndexOfThisNode().
  Result<std::optional<int>> Index();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const Root& root_;
  std::string path_;
  std::optional<Fabric> fabric_;
  std::string node_;
};

// The part of `given` that this node may allocate; all nodes of the cluster share the range of `given`. The
// part is the node's slice of the subnet, of `length`, by its index in the fabric. Without a fabric of
// several nodes it is the whole of `given`.
Result<IpRange> WithinSlice(const RangeFields& range, const IpRange& given, const std::optional<int>& length,
                            FabricSource& source);

}  // namespace railhead::ipam
