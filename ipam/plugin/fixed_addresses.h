// Fixed addresses that an ADD asks for: by the capability "ips" (runtimeConfig.ips), in the configuration
// (args.cni.ips), or in the environment (CNI_ARGS IP=A,B). The first of these that names any is the one that
// counts.
//
// Each is "10.0.0.5" or "10.0.0.5/24".
// Errors: kInvalid, naming where the address stands.
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/cni_args.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead::ipam {

struct FixedAddress {
  IpAddress address;
  std::optional<int> length;  // of the prefix that it was written with
};

// `root` is the whole network configuration; errors stick to it.
std::vector<FixedAddress> ReadFixedAddresses(JsonReader& root, const CniArgs& args);

}  // namespace railhead::ipam
