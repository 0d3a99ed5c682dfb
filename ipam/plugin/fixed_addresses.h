// Fixed addresses that an ADD asks for: by the capability "ips" (runtimeConfig.ips), in the configuration
// (args.cni.ips), or in the environment (CNI_ARGS IP=A,B). The first of these that names any is the one that
// counts.
//
// Each is "10.0.0.5" or "10.0.0.5/24". It goes to the first requested address with a pool that contains it.
// With several links, that is the link with the matching subnet.
// Errors: kInvalid, naming where the address stands, or which addresses may be asked for.
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

struct AddressPlan;

struct FixedAddress {
  IpAddress address;
  std::optional<int> length;  // of the prefix that it was written with
};

// `root` is the whole network configuration; errors stick to it.
std::vector<FixedAddress> ReadFixedAddresses(JsonReader& root, const CniArgs& args);

// Puts every request into the plan that can meet it.
Result<void> AssignFixedAddresses(const std::vector<FixedAddress>& requests, std::vector<AddressPlan>& plans);

}  // namespace railhead::ipam
