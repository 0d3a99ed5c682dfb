// Fixed addresses that an ADD asks for: by the capability "ips" (runtimeConfig.ips), in the
// configuration (args.cni.ips), or in the environment (CNI_ARGS IP=A,B). The first of
// these that names any is the one that counts.
//
// Each is "10.0.0.5" or "10.0.0.5/24" and goes to the first address to be given that has it
// in one of its pools: with several links, to the link whose subnet it is in.
// Errors: kInvalid, naming where the address stands, or which addresses may be asked for.
// Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/ip_address.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead {

struct AddressPlan;

// CNI_ARGS
using CniArgs = std::map<std::string, std::string>;

struct AddressRequest {
  IpAddress address;
  std::optional<int> length;  // of the prefix that it was written with
};

// `root` is the whole network configuration; errors stick to it.
std::vector<AddressRequest> ReadAddressRequests(JsonReader& root, const CniArgs& args);

// Puts every request into the plan that can meet it.
Result<void> AssignRequests(const std::vector<AddressRequest>& requests, std::vector<AddressPlan>& plans);

}  // namespace railhead
