#include "ipam/store/events.h"

#include <cstdint>
#include <utility>

#include "netns/base/bytes.h"

namespace railhead::ipam {
namespace {

using bytes::Number;
using bytes::Reader;
using bytes::Text;

// These keys lie beside the entries that every allocation changes: see address_record.cc.
constexpr char kCounterTable = 'Q';
constexpr char kEventTable = 'E';

Error MalformedEvent(std::string_view what) {
  return {ErrorCode::kIo, "address store: malformed " + std::string(what),
          "the store was written by a newer version or is damaged: restore it from a backup", 0};
}

std::string CounterKey(std::string_view pool) {
  return std::string(1, kCounterTable).append(pool);
}

std::string EventKey(std::uint64_t number) {
  return std::string(1, kEventTable) + Number(number);
}

Result<std::optional<AddressEvent>> LastEvent(const LmdbTxn& txn) {
  const auto last = RH_TRY(txn.AtOrBefore(EventKey(UINT64_MAX)));
  if (!last || last->key.front() != kEventTable) return std::nullopt;
  return RH_TRY(DecodeEvent(last->key, last->value));
}

}  // namespace

std::string_view NameOf(AddressEventKind kind) {
  switch (kind) {
    case AddressEventKind::kEarlyReuse:
      return "early-reuse";
    case AddressEventKind::kExhausted:
      return "exhausted";
    case AddressEventKind::kQuarantined:
      return "quarantined";
    case AddressEventKind::kNewBoot:
      return "new-boot";
  }
  return "unknown";
}

std::string Encode(const PoolCounters& counters) {
  return Number(counters.allocated) + Number(counters.released) + Number(counters.early_reuses) +
         Number(counters.exhausted) + Number(counters.quarantined);
}

Result<PoolCounters> DecodeCounters(std::string_view bytes) {
  Reader reader(bytes);
  PoolCounters counters;
  counters.allocated = reader.Number();
  counters.released = reader.Number();
  counters.early_reuses = reader.Number();
  counters.exhausted = reader.Number();
  counters.quarantined = reader.Number();
  if (!reader.Done()) return Fail(MalformedEvent("counters"));
  return counters;
}

std::string Encode(const AddressEvent& event) {
  return Number(static_cast<std::uint64_t>(event.kind)) + Text(event.pool) +
         Text(event.address ? Encode(*event.address) : "") + Text(event.owner.network) +
         Text(event.owner.container) + Text(event.owner.ifname) + Number(event.count) + Number(event.ms) +
         Number(event.store_ms) + Number(static_cast<std::uint64_t>(event.wall_seconds));
}

Result<AddressEvent> DecodeEvent(std::string_view key, std::string_view bytes) {
  AddressEvent event;
  Reader number(key.substr(key.empty() ? 0 : 1));
  event.number = number.Number();
  Reader reader(bytes);
  const std::uint64_t kind = reader.Number();
  event.kind = static_cast<AddressEventKind>(kind);
  event.pool = reader.Text();
  if (const std::string address = reader.Text(); !address.empty()) {
    event.address = RH_TRY(DecodeAddress(address));
  }
  event.owner.network = reader.Text();
  event.owner.container = reader.Text();
  event.owner.ifname = reader.Text();
  event.count = reader.Number();
  event.ms = reader.Number();
  event.store_ms = reader.Number();
  event.wall_seconds = static_cast<std::int64_t>(reader.Number());
  if (!number.Done() || !reader.Done() || kind < 1 || kind > UINT8_MAX) return Fail(MalformedEvent("event"));
  return event;
}

Result<void> EventLog::Count(std::string_view pool, std::uint64_t PoolCounters::*which) {
  const std::string key = CounterKey(pool);
  const auto bytes = RH_TRY(txn_.Get(key));
  PoolCounters counters;
  if (bytes) counters = RH_TRY(DecodeCounters(*bytes));
  ++(counters.*which);
  return txn_.Put(key, Encode(counters));
}

Result<void> EventLog::Note(AddressEvent event) {
  const auto last = RH_TRY(LastEvent(txn_));
  if (last && event.kind == AddressEventKind::kExhausted && last->kind == event.kind &&
      last->pool == event.pool) {
    event.number = last->number;
    event.count += last->count;
  } else {
    event.number = last ? last->number + 1 : 1;
  }
  if (event.number > kMaxEvents) RH_TRY(txn_.Erase(EventKey(event.number - kMaxEvents)));
  return txn_.Put(EventKey(event.number), Encode(event));
}

Result<std::map<std::string, PoolCounters>> ReadCounters(const LmdbTxn& txn) {
  std::map<std::string, PoolCounters> counters;
  const auto entries = RH_TRY(txn.Under(std::string(1, kCounterTable)));
  for (const KeyValue& entry : entries) counters[entry.key.substr(1)] = RH_TRY(DecodeCounters(entry.value));
  return counters;
}

Result<std::vector<AddressEvent>> ReadEvents(const LmdbTxn& txn, std::uint64_t after) {
  std::vector<AddressEvent> events;
  if (after == UINT64_MAX) return events;
  for (std::string at = EventKey(after + 1);;) {
    const auto entry = RH_TRY(txn.AtOrAfter(at));
    if (!entry || entry->key.front() != kEventTable) return events;
    events.push_back(RH_TRY(DecodeEvent(entry->key, entry->value)));
    at = entry->key + '\0';
  }
}

}  // namespace railhead::ipam
