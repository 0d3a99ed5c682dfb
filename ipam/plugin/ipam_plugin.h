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

#include <string>
#include <utility>
#include <vector>

#include "cni/protocol/plugin.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

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

}  // namespace railhead::ipam
