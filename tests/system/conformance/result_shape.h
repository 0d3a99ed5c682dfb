// Whether a result obeys the specification of its version.
// Source: SPEC.md of 0.2.0, 0.3.0, 0.4.0, 1.0.0 and 1.1.0, section "Result".
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "tests/system/conformance/json.h"

namespace railhead::conformance {

// Returns the first fault. `ipam`: the result of an IPAM plugin, which has no interfaces.
Result<void> CheckShape(const Json& result, const std::string& version, bool ipam);

struct ResultIp {
  IpPrefix address;
  int interface = -1;  // -1: not given
};
std::vector<ResultIp> IpsOf(const Json& result);

// Index in the result's interfaces; nullopt: not there.
std::optional<std::size_t> FindInterface(const Json& result, const std::string& name,
                                         const std::string& sandbox);

}  // namespace railhead::conformance
