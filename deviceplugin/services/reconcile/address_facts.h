// The state of the node's address store for operators: how full each pool is, its counters, and the events
// since the last call (ipam/store/events.h).
// Threads: none; takes the store's lock for a moment. Errors: as AddressStore.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ipam/store/events.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::reconcile {

struct PoolFacts {
  std::string pool;
  std::uint64_t held = 0;
  std::uint64_t cooling_down = 0;
  std::uint64_t quarantined = 0;
  ipam::PoolCounters counters;
};

struct AddressFacts {
  std::vector<PoolFacts> pools;            // by name
  std::vector<ipam::AddressEvent> events;  // oldest first
};

// `after`: the number of the last known event; the result has only later ones.
Result<AddressFacts> ReadAddressFacts(const Root& root, std::uint64_t after);

// "10.1.0.7 of 10.1.0.0/24 was reused only 75 s after its release, ..."
std::string Sentence(const ipam::AddressEvent& event);

}  // namespace railhead::reconcile
