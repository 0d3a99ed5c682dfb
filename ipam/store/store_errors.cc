#include "ipam/store/store_errors.h"

#include <algorithm>
#include <string>

#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

constexpr std::uint64_t kMillisecondsPerSecond = 1000;

Result<std::uint64_t> CountQuarantined(const LmdbTxn& txn, const AddressPool& pool) {
  std::uint64_t count = 0;
  const auto entries = RH_TRY(txn.Under(QuarantinePrefix(pool.name)));
  for (const KeyValue& entry : entries) {
    const QueueEntry quarantined = RH_TRY(DecodeQueueKey(pool.name, entry.key));
    if (pool.ranges.Contains(quarantined.address)) ++count;
  }
  return count;
}

std::string InSeconds(std::uint64_t ms) {
  return std::to_string((ms + kMillisecondsPerSecond - 1) / kMillisecondsPerSecond) + " s";
}

std::string Describe(const AddressOwner& owner) {
  return "container " + owner.container + ", interface " + owner.ifname + ", network " + owner.network;
}

}  // namespace

std::uint64_t Milliseconds(std::chrono::seconds time) {
  return static_cast<std::uint64_t>(time.count()) * kMillisecondsPerSecond;
}

Error HeldByAnother(const AddressRecord& held) {
  return {ErrorCode::kBusy,
          "address " + held.address.ToString() + " of " + held.pool + " is held by " + Describe(held.owner) +
              " since " + UtcText(held.wall_seconds),
          "delete that container, or request another address", 0};
}

Error NotYetReusable(const AddressRecord& record, std::uint64_t left_ms) {
  const std::string which = "address " + record.address.ToString() + " of " + record.pool;
  if (record.state == AddressState::kQuarantined) {
    return {ErrorCode::kBusy,
            which + " is in quarantine for another " + InSeconds(left_ms) + ": it was found in use at " +
                UtcText(record.wall_seconds) + ", when it was allocated to " + Describe(record.owner),
            "find the machine that uses it, or request another address", 0};
  }
  return {ErrorCode::kBusy,
          which + " is in its reuse delay for another " + InSeconds(left_ms) + ": it was released at " +
              UtcText(record.wall_seconds) + " by " + Describe(record.owner),
          "try again then, or shorten reuseDelaySeconds", 0};
}

Result<Error> ExplainExhausted(const LmdbTxn& txn, const AddressPool& pool, std::uint64_t store_ms) {
  const std::string prefix = ReuseQueuePrefix(pool.name);
  const std::uint64_t delay_ms =
      Milliseconds(std::min(pool.reuse_delay, pool.min_reuse_delay.value_or(pool.reuse_delay)));
  std::uint64_t cooling_down = 0;
  std::uint64_t first_ms = 0;
  for (std::string at = prefix;;) {
    const auto entry = RH_TRY(txn.AtOrAfter(at));
    if (!entry || !entry->key.starts_with(prefix)) break;
    const QueueEntry released = RH_TRY(DecodeQueueKey(pool.name, entry->key));
    if (pool.ranges.Contains(released.address) && cooling_down++ == 0) first_ms = released.at_ms + delay_ms;
    at = entry->key + '\0';
  }
  const std::uint64_t quarantined = RH_TRY(CountQuarantined(txn, pool));
  const std::uint64_t size = pool.ranges.Size();
  Error error;
  error.code = ErrorCode::kExhausted;
  error.message = "no free address in " + pool.ranges.ToString() + " of subnet " + pool.name + ": size " +
                  std::to_string(size) + ", in use " +
                  std::to_string(size - std::min(size, cooling_down + quarantined)) + ", cooling down " +
                  std::to_string(cooling_down);
  if (quarantined != 0) error.message += ", in quarantine " + std::to_string(quarantined);
  if (cooling_down == 0) {
    error.hint = "delete pods or widen the range";
  } else {
    const std::uint64_t wait_ms = first_ms > store_ms ? first_ms - store_ms : 0;
    error.hint = "the next address is free again in " + InSeconds(wait_ms) +
                 "; widen the range or shorten reuseDelaySeconds (" +
                 std::to_string(pool.reuse_delay.count()) + ")";
  }
  return error;
}

}  // namespace railhead::ipam
