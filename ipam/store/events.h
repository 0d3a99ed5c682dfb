// What happened in the address store, for metrics and events: counters for each pool, and a
// bounded list of events for the operator. Kept in the store, since the processes that allocate
// addresses live for milliseconds; written in the transaction that did it.
//
//   counters  'Q' pool    -> PoolCounters
//   event     'E' number  -> AddressEvent
//
// Errors: as LmdbTxn; decoding fails with kIo: the store is damaged. Threads: none; within the
// caller's transaction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipam/store/address_record.h"
#include "ipam/store/lmdb.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

// Since the store was made; none of them ever falls.
struct PoolCounters {
  std::uint64_t allocated = 0;
  std::uint64_t released = 0;      // for whatever reason
  std::uint64_t early_reuses = 0;  // allocated before the reuse delay was over
  std::uint64_t exhausted = 0;     // refused requests: there was no address
  std::uint64_t quarantined = 0;

  bool operator==(const PoolCounters&) const = default;
};

// Other kinds are of other versions, as 5 of one that extended the file after a loss of power.
enum class AddressEventKind : std::uint8_t {
  kEarlyReuse = 1,   // `address` was allocated to `owner` `ms` after its release
  kExhausted = 2,    // `owner` was refused; `count` times since the event before this one
  kQuarantined = 3,  // `address`, which `owner` held, is out of use for `ms`
  kNewBoot = 4,      // `count` addresses of earlier boots were released
};
// "early-reuse", "exhausted", "quarantined", "new-boot"; "unknown" of other versions
std::string_view NameOf(AddressEventKind kind);

struct AddressEvent {
  std::uint64_t number = 0;  // one more for each event, from 1
  AddressEventKind kind = AddressEventKind::kExhausted;
  std::string pool;  // empty: of all
  std::optional<IpAddress> address;
  AddressOwner owner;
  std::uint64_t count = 1;
  std::uint64_t ms = 0;
  std::uint64_t store_ms = 0;     // when it was last counted
  std::int64_t wall_seconds = 0;  // the same, for people

  bool operator==(const AddressEvent&) const = default;
};

// How many are kept; older ones go.
inline constexpr std::uint64_t kMaxEvents = 256;

std::string Encode(const PoolCounters& counters);
std::string Encode(const AddressEvent& event);
Result<PoolCounters> DecodeCounters(std::string_view bytes);
// `key` is the event's.
Result<AddressEvent> DecodeEvent(std::string_view key, std::string_view bytes);

class EventLog {
 public:
  explicit EventLog(LmdbTxn& txn) : txn_(txn) {}

  // One more of what `which` counts.
  Result<void> Count(std::string_view pool, std::uint64_t PoolCounters::*which);
  // Numbers the event and keeps it. The same pool exhausted again is one event.
  Result<void> Note(AddressEvent event);

 private:
  LmdbTxn& txn_;
};

// By pool.
Result<std::map<std::string, PoolCounters>> ReadCounters(const LmdbTxn& txn);
// Those with numbers above `after`, oldest first.
Result<std::vector<AddressEvent>> ReadEvents(const LmdbTxn& txn, std::uint64_t after);

}  // namespace railhead::ipam
