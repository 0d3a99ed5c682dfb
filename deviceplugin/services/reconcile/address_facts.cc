#include "deviceplugin/services/reconcile/address_facts.h"

#include <map>
#include <utility>

#include "cni/state/paths.h"
#include "ipam/store/address_record.h"
#include "ipam/store/store.h"

namespace railhead::reconcile {

Result<AddressFacts> ReadAddressFacts(const Root& root, std::uint64_t after) {
  AddressFacts facts;
  const auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  if (!store) return facts;
  std::map<std::string, PoolFacts> pools;
  const auto counters = RH_TRY(store->Counters());
  for (const auto& [pool, counted] : counters) pools[pool].counters = counted;
  const auto records = RH_TRY(store->List());
  for (const ipam::AddressRecord& record : records) {
    PoolFacts& pool = pools[record.pool];
    ++(record.state == ipam::AddressState::kHeld          ? pool.held
       : record.state == ipam::AddressState::kCoolingDown ? pool.cooling_down
                                                          : pool.quarantined);
  }
  for (auto& [name, pool] : pools) {
    pool.pool = name;
    facts.pools.push_back(std::move(pool));
  }
  facts.events = RH_TRY(store->Events(after));
  return facts;
}

std::string Sentence(const ipam::AddressEvent& event) {
  const std::string address = event.address ? event.address->ToString() : "an address";
  const std::string of = event.pool.empty() ? std::string() : " of " + event.pool;
  const std::string seconds = std::to_string(event.ms / 1000) + " s";
  switch (event.kind) {
    case ipam::AddressEventKind::kEarlyReuse:
      return address + of + " was reused only " + seconds +
             " after its release, because no other address was free: widen the range, or peers may send to "
             "its "
             "former owner";
    case ipam::AddressEventKind::kExhausted:
      return "no address was free" + of + ", " + std::to_string(event.count) +
             " times: widen the range or delete pods";
    case ipam::AddressEventKind::kQuarantined:
      return address + of + " is in use by another machine and in quarantine for " + seconds +
             ": find that machine, or exclude the address";
    case ipam::AddressEventKind::kNewBoot:
      return std::to_string(event.count) + " addresses of earlier boots were released";
  }
  return std::string(NameOf(event.kind));
}

}  // namespace railhead::reconcile
