#include "deviceplugin/services/reconcile/address_facts.h"

#include <map>
#include <utility>

#include "ipam/store/store.h"

namespace railhead {

Result<AddressFacts> ReadAddressFacts(const Root& root, std::uint64_t after) {
  AddressFacts facts;
  const auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return facts;
  facts.store = RH_TRY(store->OwnCounters());
  std::map<std::string, PoolFacts> pools;
  const auto counters = RH_TRY(store->Counters());
  for (const auto& [pool, counted] : counters) pools[pool].counters = counted;
  const auto records = RH_TRY(store->List());
  for (const AddressRecord& record : records) {
    PoolFacts& pool = pools[record.pool];
    ++(record.state == AddressState::kHeld      ? pool.held
       : record.state == AddressState::kResting ? pool.resting
                                                : pool.quarantined);
  }
  for (auto& [name, pool] : pools) {
    pool.pool = name;
    facts.pools.push_back(std::move(pool));
  }
  facts.events = RH_TRY(store->Events(after));
  return facts;
}

std::string Sentence(const AddressEvent& event) {
  const std::string address = event.address ? event.address->ToString() : "an address";
  const std::string of = event.pool.empty() ? std::string() : " of " + event.pool;
  const std::string seconds = std::to_string(event.ms / 1000) + " s";
  switch (event.kind) {
    case AddressEventKind::kRestShortened:
      return address + of + " was given again after only " + seconds +
             " of rest, because there was no other: widen the range, or peers may send to its former owner";
    case AddressEventKind::kExhausted:
      return "there was no address left" + of + ", " + std::to_string(event.count) +
             " times: widen the range or delete pods";
    case AddressEventKind::kQuarantined:
      return address + of + " is in use by another machine and is not given for " + seconds +
             ": find that machine, or exclude the address";
    case AddressEventKind::kNewBoot:
      return std::to_string(event.count) + " addresses of earlier boots rest now";
    case AddressEventKind::kExtended:
      return "the address store's file was " + std::to_string(event.count) +
             " pages shorter than it counts; every page in use was there, and it was extended: nothing is "
             "lost";
  }
  return std::string(NameOf(event.kind));
}

}  // namespace railhead
