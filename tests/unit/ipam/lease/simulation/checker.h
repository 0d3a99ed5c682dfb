// Whether an address was held by two nodes at once, or was given to a node too early after
// another had released it: from the recorded history alone, knowing nothing of leases.
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace railhead::testing {

struct HistoryEvent {
  enum class Kind : std::uint8_t {
    kHold,
    kRelease,
    kExcuse,  // the node has been silent for reclaimSeconds: what it holds may be given to others
  };
  std::uint64_t time_ms = 0;
  Kind kind = Kind::kHold;
  std::string node;
  std::string address;  // kExcuse: none
};

// What is wrong, as sentences. `reuse_delay_ms`: between a release and another node's hold; as clocks
// run differently, a hundredth less is fine.
std::vector<std::string> CheckHistory(const std::vector<HistoryEvent>& history, std::uint64_t reuse_delay_ms);

}  // namespace railhead::testing
