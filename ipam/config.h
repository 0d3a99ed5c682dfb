// The `ipam` object of a network configuration, resolved into a pool.
//
// Either by `rail`: subnet, this node's range, exclusions, gateway, routes and
// rest time come from fabric.json; or inline, by `subnet`. Fields and their
// meaning: docs/interfaces.md, "CNI IPAM configuration". Reads files, changes
// nothing.
// Errors: kMalformed, kInvalid with the JSON pointer and what to do. A rail
// without a range for this node is kInvalid: guessing one would hand out
// another node's addresses.
// Threads: pure but for reading files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/skel/result.h"
#include "ipam/store.h"
#include "netns/base/ip_address.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

struct IpamPlan {
  AddressPool pool;
  std::optional<IpAddress> gateway;
  std::vector<CniRoute> routes;
};

// `config` is the whole network configuration as the runtime sent it.
Result<IpamPlan> ResolveIpam(const std::string& config, const Root& root);

}  // namespace railhead
