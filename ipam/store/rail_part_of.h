// RailPartOf: the part of a rail's subnet that this node gives addresses of, from the rail of the fabric.
// Threads: pure functions. Errors: kInvalid when the part has no addresses.
#pragma once

#include <chrono>
#include <string>

#include "netns/base/result.h"

namespace railhead::ipam {

struct RailPart;
struct RangeSpec;

// Of the rail, where this node has the addresses of `spec`. kInvalid: there are none.
Result<RailPart> RailPartOf(const std::string& rail, const RangeSpec& spec, std::chrono::seconds reuse_delay);

}  // namespace railhead::ipam
