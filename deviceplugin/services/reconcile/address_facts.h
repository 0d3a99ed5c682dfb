// What an operator wants to know of the node's address store: how full each pool is, what has
// been counted, and what has happened since the last look (ipam/store/events.h).
// Threads: none; takes the store's lock for a moment. Errors: as AddressStore.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ipam/store/events.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

struct PoolFacts {
  std::string pool;
  std::uint64_t held = 0;
  std::uint64_t resting = 0;
  std::uint64_t quarantined = 0;
  PoolCounters counters;
};

struct AddressFacts {
  StoreCounters store;
  std::vector<PoolFacts> pools;      // by name
  std::vector<AddressEvent> events;  // oldest first
};

// `after`: the number of the last event that is known; only later ones are told.
Result<AddressFacts> ReadAddressFacts(const Root& root, std::uint64_t after);

// "10.1.0.7 of 10.1.0.0/24 was given again after 75 s of rest: ..."
std::string Sentence(const AddressEvent& event);

}  // namespace railhead
