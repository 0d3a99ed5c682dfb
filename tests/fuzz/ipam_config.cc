// The configuration of railhead-ipam, on a node without a fabric.
#include "ipam/plugin/ipam_config.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  const railhead::Root nowhere("/nonexistent");
  const auto plan = railhead::ipam::ResolveIpam(railhead::fuzz::TextOf(data, size), {}, nowhere);
  if (!plan) return 0;
  for (const auto& address : plan->addresses) {
    Require(!address.choices.empty(), "an address comes from a pool");
    for (const auto& choice : address.choices) {
      const railhead::ipam::RangeSet& ranges = choice.pool.ranges;
      for (const std::uint64_t index : {std::uint64_t{0}, ranges.Size() / 2, ranges.Size() - 1}) {
        const auto at = ranges.At(index);
        if (ranges.Size() == 0) continue;
        Require(at && ranges.subnet().Contains(*at), "a pool's addresses are in its subnet");
        Require(ranges.IndexOf(*at) == index, "an address has the index that it was found by");
      }
    }
  }
  return 0;
}
