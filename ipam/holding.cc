#include "ipam/holding.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace railhead {
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
  for (AddressRecord& held : RH_TRY(ledger.HeldBy(claim.owner))) {
    const auto pool = std::find_if(claim.pools.begin(), claim.pools.end(),
                                   [&](const AddressPool& one) { return one.name == held.pool; });
    if (pool == claim.pools.end()) continue;
    if (!kept && Fits(claim, *pool, held)) {
      // A container that outlives a reboot by its name is not one of an earlier boot.
      if (RH_TRY(ledger.Renew(held))) changed = true;
      kept = std::move(held);
    } else {
      RH_TRY(ledger.Rest(held));
      changed = true;
    }
  }
  return kept;
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
  Error error = RH_TRY(ledger.Explain(claim.pools.front()));
  for (std::size_t i = 1; i < claim.pools.size(); ++i) {
    error.message += "; " + RH_TRY(ledger.Explain(claim.pools[i])).message;
  }
  return Fail(std::move(error));
}

Result<AddressRecord> Hold(AddressLedger& ledger, const OwnerClaim& claim, bool& changed) {
  for (const AddressPool& pool : claim.pools) RH_TRY(CheckOwner(claim.owner, pool.name));
  if (auto kept = RH_TRY(KeepHeld(ledger, claim, changed)); kept) return std::move(*kept);
  changed = true;
  return HoldNew(ledger, claim);
}

}  // namespace

Result<Holding> HoldAll(AddressLedger& ledger, const std::vector<OwnerClaim>& claims) {
  Holding holding;
  for (const OwnerClaim& claim : claims) {
    auto held = Hold(ledger, claim, holding.changed);
    if (!held) {
      const std::string_view link = LinkName(claim.owner);
      return link.empty() ? Fail(std::move(held.error())) : Fail(Wrap(std::move(held.error()), link));
    }
    holding.records.push_back(std::move(*held));
  }
  return holding;
}

}  // namespace railhead
