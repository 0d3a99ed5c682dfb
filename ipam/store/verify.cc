#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ipam/store/ledger.h"
#include "ipam/store/store.h"

namespace railhead::ipam {
namespace {

using PoolAddress = std::pair<std::string, IpAddress>;

std::string NameOf(const PoolAddress& at) {
  return at.second.ToString() + " of " + at.first;
}

// Addresses in the runs of a pool, which have to be maximal and in order.
Result<std::set<PoolAddress>> AddressesInRuns(const LmdbTxn& txn, const std::string& pool,
                                              std::vector<std::string>& findings) {
  std::set<PoolAddress> taken;
  std::optional<IpAddress> end_before;
  const std::string prefix = RunPrefix(pool);
  const auto entries = RH_TRY(txn.Under(prefix));
  for (const KeyValue& entry : entries) {
    const IpAddress first = RH_TRY(DecodeAddress(std::string_view(entry.key).substr(prefix.size())));
    const IpAddress last = RH_TRY(DecodeAddress(entry.value));
    if (last < first || (end_before && first <= end_before->Plus(1))) {
      findings.push_back("run " + first.ToString() + "-" + last.ToString() + " of " + pool +
                         " overlaps or touches its neighbour, or is reversed");
      continue;
    }
    for (IpAddress at = first; at != last; at = at.Plus(1)) taken.insert({pool, at});
    taken.insert({pool, last});
    end_before = last;
  }
  return taken;
}

// The entries of owners, by what they point to.
Result<std::map<PoolAddress, std::string>> OwnerEntries(const LmdbTxn& txn,
                                                        std::vector<std::string>& findings) {
  std::map<PoolAddress, std::string> owners;
  const auto entries = RH_TRY(txn.Under(AllOwnersPrefix()));
  for (const KeyValue& entry : entries) {
    const auto end = entry.key.rfind('\0');
    const auto address = RH_TRY(DecodeAddress(entry.value));
    const PoolAddress at{entry.key.substr(end + 1), address};
    if (!owners.emplace(at, entry.key.substr(0, end + 1)).second) {
      findings.push_back(NameOf(at) + " has two owners");
    }
  }
  return owners;
}

Result<std::set<PoolAddress>> QueuedAddresses(const LmdbTxn& txn, const std::string& pool,
                                              const std::string& prefix) {
  std::set<PoolAddress> queued;
  const auto entries = RH_TRY(txn.Under(prefix));
  for (const KeyValue& entry : entries) {
    const QueueEntry one = RH_TRY(DecodeQueueKey(pool, entry.key));
    queued.insert({pool, one.address});
  }
  return queued;
}

}  // namespace

Result<std::vector<std::string>> AddressStore::Verify() const {
  const auto all = RH_TRY(List());
  const LmdbTxn txn = RH_TRY(LmdbTxn::Begin(env_, LmdbTxn::Mode::kRead));
  std::vector<std::string> findings;
  std::set<std::string> pools;
  std::set<PoolAddress> recorded;
  std::set<PoolAddress> cooling_down;
  std::set<PoolAddress> quarantined;
  auto owners = RH_TRY(OwnerEntries(txn, findings));
  for (const AddressRecord& allocation : all) {
    const PoolAddress at{allocation.pool, allocation.address};
    pools.insert(allocation.pool);
    recorded.insert(at);
    if (allocation.state == AddressState::kQuarantined) {
      quarantined.insert(at);
      continue;
    }
    const auto owner = owners.find(at);
    if (allocation.state == AddressState::kCoolingDown) {
      cooling_down.insert(at);
      // Released by a reboot: its owner may have it again.
      if (owner != owners.end() && owner->second == OwnerPrefix(allocation.owner)) owners.erase(owner);
      continue;
    }
    if (owner == owners.end() || owner->second != OwnerPrefix(allocation.owner)) {
      findings.push_back(NameOf(at) + " is held, but its owner has no entry for it");
    } else {
      owners.erase(owner);
    }
  }
  for (const auto& [at, owner] : owners) findings.push_back(NameOf(at) + " has an owner, but is not held");
  std::set<PoolAddress> in_runs;
  std::set<PoolAddress> in_reuse_queue;
  std::set<PoolAddress> in_quarantine;
  for (const std::string& pool : pools) {
    in_runs.merge(RH_TRY(AddressesInRuns(txn, pool, findings)));
    in_reuse_queue.merge(RH_TRY(QueuedAddresses(txn, pool, ReuseQueuePrefix(pool))));
    in_quarantine.merge(RH_TRY(QueuedAddresses(txn, pool, QuarantinePrefix(pool))));
  }
  if (in_runs != recorded) findings.emplace_back("the runs and the recorded addresses differ");
  if (in_reuse_queue != cooling_down)
    findings.emplace_back("the reuse queue and the addresses that cool down differ");
  if (in_quarantine != quarantined)
    findings.emplace_back("the quarantine queue and the addresses in quarantine differ");
  return findings;
}

}  // namespace railhead::ipam
