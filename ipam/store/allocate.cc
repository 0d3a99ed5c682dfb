#include "ipam/store/allocate.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ipam/store/store.h"
#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

// A transaction frees at most this many rested addresses unless it needs more:
// no allocation pays for a mass deletion before it.
constexpr std::size_t kWakeLimit = 32;

// Whether the owner may keep what it holds of `pool`.
bool Fits(const OwnerClaim& claim, const AddressPool& pool, const AddressRecord& held) {
  if (claim.wanted) return held.address == *claim.wanted;
  return pool.ranges.Contains(held.address);
}

// What the owner holds already. Of the rest of what it has in the claim's pools, nothing
// stays held.
Result<std::optional<AddressRecord>> KeepHeld(AddressLedger& ledger, const OwnerClaim& claim, bool& changed) {
  std::optional<AddressRecord> kept;
  auto owned = RH_TRY(ledger.HeldBy(claim.owner));
  for (AddressRecord& held : owned) {
    const auto pool = std::ranges::find(claim.pools, held.pool, &AddressPool::name);
    if (pool == claim.pools.end()) continue;
    if (!kept && Fits(claim, *pool, held)) {
      kept = std::move(held);
    } else {
      RH_TRY(ledger.Rest(held));
      changed = true;
    }
  }
  return kept;
}

// What the owner had before a reboot: some runtimes start the same containers again.
Result<std::optional<AddressRecord>> HoldAgain(AddressLedger& ledger, const OwnerClaim& claim) {
  for (const AddressPool& pool : claim.pools) {
    const auto had = RH_TRY(ledger.HadBefore(pool, claim.owner));
    if (had && Fits(claim, pool, *had)) return RH_TRY(ledger.HoldAgain(pool, *had));
  }
  return std::nullopt;
}

Result<AddressRecord> HoldWanted(AddressLedger& ledger, const OwnerClaim& claim, const IpAddress& wanted) {
  for (const AddressPool& pool : claim.pools) {
    if (!pool.ranges.Contains(wanted)) continue;
    RH_TRY(ledger.Wake(pool, kWakeLimit));
    return ledger.HoldThis(pool, claim.owner, wanted);
  }
  // Where the pool is leased, blocks come and go; elsewhere the configuration was checked.
  return Fail(ErrorCode::kBusy,
              "address " + wanted.ToString() + " is in no range that this node may give: " +
                  claim.pools.front().ranges.ToString() + " of " + claim.pools.front().name,
              "ask for another address, or for one on the node that has its block");
}

Result<std::optional<AddressRecord>> HoldNextOf(AddressLedger& ledger, const AddressPool& pool,
                                                const AddressOwner& owner) {
  for (;;) {
    const std::size_t woken = RH_TRY(ledger.Wake(pool, kWakeLimit));
    if (auto given = RH_TRY(ledger.HoldNext(pool, owner)); given) return given;
    if (woken == 0) return std::nullopt;
  }
}

Result<AddressRecord> HoldNew(AddressLedger& ledger, const OwnerClaim& claim) {
  if (claim.wanted) return HoldWanted(ledger, claim, *claim.wanted);
  for (const AddressPool& pool : claim.pools) {
    if (auto given = RH_TRY(HoldNextOf(ledger, pool, claim.owner)); given) return std::move(*given);
  }
  for (const AddressPool& pool : claim.pools) {
    if (auto given = RH_TRY(ledger.HoldRested(pool, claim.owner)); given) return std::move(*given);
  }
  Error error = RH_TRY(ledger.Explain(claim.pools.front()));
  for (std::size_t i = 1; i < claim.pools.size(); ++i) {
    error.message += "; " + RH_TRY(ledger.Explain(claim.pools[i])).message;
  }
  return Fail(std::move(error));
}

// The error of a claim says which link it is of.
template <typename T>
Result<T> Named(const OwnerClaim& claim, Result<T> result) {
  const std::string_view link = LinkName(claim.owner);
  if (result || link.empty()) return result;
  return Fail(Wrap(std::move(result.error()), link));
}

// The claims of one Allocate(), and what meets them so far.
class Meeting {
 public:
  Meeting(AddressLedger& ledger, const std::vector<OwnerClaim>& claims)
      : ledger_(ledger), claims_(claims), met_(claims.size()) {}

  Result<void> Keep() {
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      for (const AddressPool& pool : claims_[i].pools) {
        RH_TRY(Named(claims_[i], CheckOwner(claims_[i].owner, pool.name)));
      }
      met_[i] = RH_TRY(Named(claims_[i], KeepHeld(ledger_, claims_[i], changed_)));
      if (met_[i]) continue;
      met_[i] = RH_TRY(Named(claims_[i], HoldAgain(ledger_, claims_[i])));
      changed_ = true;
    }
    return {};
  }
  // What `which` says of what is not met yet, in the order of the claims.
  template <typename Which>
  Result<void> HoldEach(const Which& which) {
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (met_[i] || !which(claims_[i])) continue;
      auto held = HoldNew(ledger_, claims_[i]);
      if (!held && held.error().code == ErrorCode::kExhausted) refused_ = &claims_[i];
      met_[i] = RH_TRY(Named(claims_[i], std::move(held)));
      changed_ = true;
    }
    return {};
  }
  // Two devices of each rail are two groups.
  Result<void> HoldAlignedGroups() {
    std::vector<bool> tried(claims_.size(), false);
    for (;;) {
      const std::vector<std::size_t> group = NextGroup(tried);
      if (group.empty()) return {};
      if (group.size() > 1) RH_TRY(HoldGroup(group));
    }
  }
  // The claim whose pools have no address.
  [[nodiscard]] const OwnerClaim* refused() const { return refused_; }
  Holding Finish() {
    Holding holding;
    holding.changed = changed_;
    for (auto& record : met_) holding.records.push_back(std::move(*record));
    return holding;
  }

 private:
  [[nodiscard]] bool CanBeAligned(std::size_t i) const {
    return !met_[i] && claims_[i].aligned && claims_[i].pools.size() == 1;
  }
  // The first claim of each pool that is not in a group yet, of one family.
  [[nodiscard]] std::vector<std::size_t> NextGroup(std::vector<bool>& tried) const {
    std::vector<std::size_t> group;
    std::set<std::string_view> pools;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (tried[i] || !CanBeAligned(i)) continue;
      const AddressPool& pool = claims_[i].pools.front();
      const bool same_family =
          group.empty() || claims_[group.front()].pools.front().ranges.subnet().address.IsV4() ==
                               pool.ranges.subnet().address.IsV4();
      if (!same_family || !pools.insert(pool.name).second) continue;
      tried[i] = true;
      group.push_back(i);
    }
    return group;
  }
  Result<void> HoldGroup(const std::vector<std::size_t>& group) {
    std::vector<const OwnerClaim*> claims;
    for (const std::size_t i : group) {
      RH_TRY(ledger_.Wake(claims_[i].pools.front(), kWakeLimit));
      claims.push_back(&claims_[i]);
    }
    auto held = RH_TRY(ledger_.HoldAligned(claims));
    if (!held) return {};
    for (std::size_t i = 0; i < group.size(); ++i) met_[group[i]] = std::move((*held)[i]);
    changed_ = true;
    return {};
  }

  AddressLedger& ledger_;
  const std::vector<OwnerClaim>& claims_;
  std::vector<std::optional<AddressRecord>> met_;  // one for each claim
  bool changed_ = false;
  const OwnerClaim* refused_ = nullptr;
};

}  // namespace

Result<Holding> HoldAll(AddressLedger& ledger, const std::vector<OwnerClaim>& claims,
                        const OwnerClaim** refused) {
  Meeting meeting(ledger, claims);
  RH_TRY(meeting.Keep());
  // Before any other takes it.
  RH_TRY(meeting.HoldEach([](const OwnerClaim& claim) { return claim.wanted.has_value(); }));
  RH_TRY(meeting.HoldAlignedGroups());
  auto held = meeting.HoldEach([](const OwnerClaim&) { return true; });
  if (held) return meeting.Finish();
  if (refused != nullptr) *refused = meeting.refused();
  return Fail(std::move(held.error()));
}

Result<HeldAddresses> ListHeld(const Root& root) {
  HeldAddresses held;
  const auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return held;
  held.now = RH_TRY(store->Now());
  held.records = RH_TRY(store->List());
  held.records.erase(
      std::remove_if(held.records.begin(), held.records.end(),
                     [](const AddressRecord& record) { return record.state != AddressState::kHeld; }),
      held.records.end());
  return held;
}

Result<std::vector<AddressRecord>> ReleaseEarlierBoots(const Root& root) {
  auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return std::vector<AddressRecord>{};
  return store->RestEarlierBoots();
}

Result<std::size_t> ReleaseOwner(const Root& root, const AddressOwner& owner) {
  auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return 0;
  return store->Release(owner);
}

namespace {

constexpr std::uint64_t kMillisecondsPerSecond = 1000;

Result<std::uint64_t> CountQuarantined(const LmdbTxn& txn, const AddressPool& pool) {
  std::uint64_t count = 0;
  const auto entries = RH_TRY(txn.Under(QuarantinePrefix(pool.name)));
  for (const KeyValue& entry : entries) {
    const RestEntry apart = RH_TRY(DecodeRestKey(pool.name, entry.key));
    if (pool.ranges.Contains(apart.address)) ++count;
  }
  return count;
}

std::string InSeconds(std::uint64_t ms) {
  return std::to_string((ms + kMillisecondsPerSecond - 1) / kMillisecondsPerSecond) + " s";
}

std::string ShownOwner(const AddressOwner& owner) {
  return "container " + owner.container + ", interface " + owner.ifname + ", network " + owner.network;
}

}  // namespace

std::uint64_t Milliseconds(std::chrono::seconds time) {
  return static_cast<std::uint64_t>(time.count()) * kMillisecondsPerSecond;
}

Error HeldByAnother(const AddressRecord& held) {
  return {ErrorCode::kBusy,
          "address " + held.address.ToString() + " of " + held.pool + " is held by " +
              ShownOwner(held.owner) + " since " + UtcText(held.wall_seconds),
          "delete that container, or ask for another address", 0};
}

Error StillResting(const AddressRecord& resting, std::uint64_t left_ms) {
  const std::string which = "address " + resting.address.ToString() + " of " + resting.pool;
  if (resting.state == AddressState::kQuarantined) {
    return {ErrorCode::kBusy,
            which + " is in quarantine for another " + InSeconds(left_ms) + ": it was found in use at " +
                UtcText(resting.wall_seconds) + ", when it was given to " + ShownOwner(resting.owner),
            "find out which machine uses it, or ask for another address", 0};
  }
  return {ErrorCode::kBusy,
          which + " rests for another " + InSeconds(left_ms) + ": it was released at " +
              UtcText(resting.wall_seconds) + " by " + ShownOwner(resting.owner),
          "try again then, or shorten restSeconds", 0};
}

Result<Error> ExplainExhausted(const LmdbTxn& txn, const AddressPool& pool, std::uint64_t store_ms) {
  const std::string prefix = RestPrefix(pool.name);
  const std::uint64_t rest_ms = Milliseconds(std::min(pool.rest, pool.min_rest.value_or(pool.rest)));
  std::uint64_t resting = 0;
  std::uint64_t first_ms = 0;
  for (std::string at = prefix;;) {
    const auto entry = RH_TRY(txn.AtOrAfter(at));
    if (!entry || !entry->key.starts_with(prefix)) break;
    const RestEntry rest = RH_TRY(DecodeRestKey(pool.name, entry->key));
    if (pool.ranges.Contains(rest.address) && resting++ == 0) first_ms = rest.at_ms + rest_ms;
    at = entry->key + '\0';
  }
  const std::uint64_t quarantined = RH_TRY(CountQuarantined(txn, pool));
  const std::uint64_t size = pool.ranges.Size();
  Error error;
  error.code = ErrorCode::kExhausted;
  error.message = "no free address in " + pool.ranges.ToString() + " of subnet " + pool.name + ": size " +
                  std::to_string(size) + ", in use " +
                  std::to_string(size - std::min(size, resting + quarantined)) + ", resting " +
                  std::to_string(resting);
  if (quarantined != 0) error.message += ", in quarantine " + std::to_string(quarantined);
  if (pool.leased) {
    error.hint = "try again later: railheadd leases another block by itself while the cluster store answers";
  } else if (resting == 0) {
    error.hint = "delete pods or widen the range";
  } else {
    const std::uint64_t wait_ms = first_ms > store_ms ? first_ms - store_ms : 0;
    error.hint = "the next address is free again in " + InSeconds(wait_ms) +
                 "; widen the range or shorten restSeconds (" + std::to_string(pool.rest.count()) + ")";
  }
  return error;
}

}  // namespace railhead::ipam
