// Checks whether two nodes held an address at once, or a node got one too early after another's release. Also
// whether two nodes might use one index at once. It uses the recorded history alone, and knows nothing of
// claims.
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
    kExcuse,  // its index was not confirmed for reclaimSeconds: what it holds may be given to others
  };
  std::uint64_t time_ms = 0;
  Kind kind = Kind::kHold;
  std::string node;
  std::string address;  // kExcuse: none
};

// The violations, as sentences. `reuse_delay_ms`: between a release and another node's hold. A hundredth less
// is fine, as clocks differ in speed.
std::vector<std::string> CheckHistory(const std::vector<HistoryEvent>& history, std::uint64_t reuse_delay_ms);

// The time in which a node may use an index.
struct IndexUse {
  std::string node;
  int index = 0;
  std::uint64_t from_ms = 0;
  std::uint64_t until_ms = 0;
};

// The violations, as sentences: two nodes with one index at once.
std::vector<std::string> CheckUses(const std::vector<IndexUse>& uses);

}  // namespace railhead::testing
