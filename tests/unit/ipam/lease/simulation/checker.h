// Checks whether two nodes held an address at once, or a node got one too early after another's release. It
// uses the recorded history alone, and knows nothing of leases.
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

// The violations, as sentences. `reuse_delay_ms`: between a release and another node's hold. A hundredth less
// is fine, as clocks differ in speed.
std::vector<std::string> CheckHistory(const std::vector<HistoryEvent>& history, std::uint64_t reuse_delay_ms);

}  // namespace railhead::testing
