// railhead-ipam: the CNI IPAM plugin.
//
// ADD answers with one address of the configured pool, its gateway and routes. With `links` it answers with
// one for each of them, all or nothing; "interface" in the result is then the index into `links`. The same
// container, interface and network get the same addresses again. DEL reads the store only, so it succeeds
// with a broken or missing fabric, for an unknown attachment, and twice. CHECK fails when an address is not
// held. GC releases the addresses that no valid attachment of its network holds, and never touches other
// networks. STATUS fails with kUnavailable when every ADD would fail: store or configuration. It passes for
// an exhausted pool, and changes nothing.
// Allocations are keyed by network name, container id and interface name.
// Usable below any main plugin: it touches no namespace.
// Errors: as ResolveIpam() and AddressStore; after an error nothing has changed.
// Threads: single-threaded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/protocol/plugin.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead::ipam {

class IpamPlugin : public CniPlugin {
 public:
  explicit IpamPlugin(Root root) : root_(std::move(root)) {}

  Result<std::string> Add(const CniRequest& request) override;
  Result<void> Del(const CniRequest& request) override;
  Result<void> Check(const CniRequest& request) override;
  Result<void> Gc(const CniRequest& request, const std::vector<ValidAttachment>& valid) override;
  Result<void> Status(const CniRequest& request) override;

 private:
  // As STATUS, with the error as it is.
  Result<void> CanAdd(const CniRequest& request);

  Root root_;
};

// Fixed addresses that an ADD asks for: by the capability "ips" (runtimeConfig.ips), in the configuration
// (args.cni.ips), or in the environment (CNI_ARGS IP=A,B). The first of these that names any is the one that
// counts.
//
// Each is "10.0.0.5" or "10.0.0.5/24". It goes to the first requested address with a pool that contains it.
// With several links, that is the link with the matching subnet.
// Errors: kInvalid, naming where the address stands, or which addresses may be asked for.
// Threads: pure functions.

struct AddressPlan;

// CNI_ARGS
using CniArgs = std::map<std::string, std::string>;

struct FixedAddress {
  IpAddress address;
  std::optional<int> length;  // of the prefix that it was written with
};

// `root` is the whole network configuration; errors stick to it.
std::vector<FixedAddress> ReadFixedAddresses(JsonReader& root, const CniArgs& args);

// Puts every request into the plan that can meet it.
Result<void> AssignFixedAddresses(const std::vector<FixedAddress>& requests, std::vector<AddressPlan>& plans);

}  // namespace railhead::ipam
