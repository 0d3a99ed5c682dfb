#include "ipam/store/refusal.h"

#include <algorithm>
#include <string>

#include "ipam/store/store.h"

namespace railhead {
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

}  // namespace railhead
