#include "ipam/store/ledger.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "ipam/store/allocate.h"
#include "ipam/store/range.h"
#include "ipam/store/store.h"

namespace railhead::ipam {
namespace {

Error Contradiction(const std::string& what) {
  return {ErrorCode::kIo, "address store: " + what, "the store is damaged: restore it from a backup", 0};
}

std::uint64_t RestMilliseconds(const AddressPool& pool) {
  return Milliseconds(pool.rest);
}

}  // namespace

Result<std::optional<IpRange>> StoredRuns::AtOrBefore(const IpAddress& address) {
  const auto found = RH_TRY(txn_.AtOrBefore(prefix_ + Encode(address)));
  if (!found || !found->key.starts_with(prefix_)) return std::nullopt;
  const auto first = RH_TRY(DecodeAddress(std::string_view(found->key).substr(prefix_.size())));
  const auto last = RH_TRY(DecodeAddress(found->value));
  return IpRange{first, last};
}

Result<void> StoredRuns::Put(const IpRange& run) {
  return txn_.Put(prefix_ + Encode(run.first), Encode(run.last));
}

Result<void> StoredRuns::Erase(const IpAddress& first) {
  return txn_.Erase(prefix_ + Encode(first));
}

Result<StoreHeader> ReadHeader(const LmdbTxn& txn) {
  const auto bytes = RH_TRY(txn.Get(HeaderKey()));
  if (!bytes) return Fail(Contradiction("no header: an LMDB file, but not of railhead-ipam"));
  return DecodeHeader(*bytes);
}

Result<AddressLedger> AddressLedger::Open(LmdbTxn& txn, const ClockReading& now) {
  auto header = RH_TRY(ReadHeader(txn));
  return AddressLedger(txn, now, std::move(header));
}

Result<std::vector<AddressRecord>> AddressLedger::HeldUnder(const std::string& prefix) const {
  std::vector<AddressRecord> held;
  const auto entries = RH_TRY(txn_->Under(prefix));
  for (const KeyValue& entry : entries) {
    // The pool is behind the last NUL; a pool's name has none.
    const std::string pool = entry.key.substr(entry.key.rfind('\0') + 1);
    const std::string key = AddressKey(pool, RH_TRY(DecodeAddress(entry.value)));
    const auto record = RH_TRY(txn_->Get(key));
    if (!record) return Fail(Contradiction("an owner's address has no record"));
    AddressRecord one = RH_TRY(DecodeRecord(key, *record));
    // What rests since a reboot still has its owner's entry.
    if (one.state == AddressState::kHeld) held.push_back(std::move(one));
  }
  return held;
}

Result<std::vector<AddressRecord>> AddressLedger::HeldBy(const AddressOwner& owner) const {
  return HeldUnder(OwnerPrefix(owner));
}

Result<std::vector<AddressRecord>> AddressLedger::HeldByAttachment(const AddressOwner& owner) const {
  std::vector<AddressRecord> held = RH_TRY(HeldBy(owner));
  const auto of_links = RH_TRY(HeldUnder(LinkOwnersPrefix(owner)));
  held.insert(held.end(), of_links.begin(), of_links.end());
  return held;
}

Result<std::vector<AddressRecord>> AddressLedger::AllHeld() const {
  return HeldUnder(AllOwnersPrefix());
}

Result<void> AddressLedger::Rest(const AddressRecord& held) {
  RH_TRY(txn_->Erase(OwnerPrefix(held.owner) + held.pool));
  return RestForOwner(held);
}

Result<void> AddressLedger::RestForOwner(const AddressRecord& held) {
  AddressRecord resting = held;
  resting.state = AddressState::kResting;
  resting.since_ms = store_ms_;
  resting.wall_seconds = now_.wall_seconds;
  RH_TRY(txn_->Put(AddressKey(held.pool, held.address), Encode(resting)));
  RH_TRY(EventLog(*txn_).Count(held.pool, &PoolCounters::released));
  return txn_->Put(RestKey(held.pool, store_ms_, held.address), "");
}

Result<AddressRecord> AddressLedger::Quarantine(const AddressRecord& held, std::chrono::seconds time) {
  AddressRecord apart = held;
  apart.state = AddressState::kQuarantined;
  apart.since_ms = store_ms_;
  apart.until_ms = store_ms_ + Milliseconds(time);
  apart.wall_seconds = now_.wall_seconds;
  EventLog log(*txn_);
  AddressEvent event = Event(AddressEventKind::kQuarantined, held.pool, held.owner);
  event.address = held.address;
  event.ms = Milliseconds(time);
  RH_TRY(log.Count(held.pool, &PoolCounters::quarantined));
  RH_TRY(log.Note(std::move(event)));
  RH_TRY(txn_->Erase(OwnerPrefix(held.owner) + held.pool));
  RH_TRY(txn_->Put(AddressKey(held.pool, held.address), Encode(apart)));
  RH_TRY(txn_->Put(QuarantineKey(held.pool, apart.until_ms, held.address), ""));
  return apart;
}

Result<bool> AddressLedger::MayQuarantine(const AddressPool& pool) const {
  constexpr std::uint64_t kPart = 4;
  const std::string prefix = QuarantinePrefix(pool.name);
  std::uint64_t apart = 0;
  const auto entries = RH_TRY(txn_->Under(prefix));
  for (const KeyValue& entry : entries) {
    const RestEntry one = RH_TRY(DecodeRestKey(pool.name, entry.key));
    const bool counts = one.at_ms > store_ms_ && one.at_ms - store_ms_ <= Milliseconds(kDefaultQuarantine);
    if (counts && pool.ranges.Contains(one.address)) ++apart;
  }
  return apart < pool.ranges.Size() / kPart;
}

Result<std::vector<AddressRecord>> AddressLedger::RestEarlierBoots() {
  std::vector<AddressRecord> earlier = RH_TRY(AllHeld());
  std::erase_if(earlier, [&](const AddressRecord& record) { return record.boot_id == now_.boot_id; });
  for (const AddressRecord& record : earlier) RH_TRY(RestForOwner(record));
  if (earlier.empty()) return earlier;
  AddressEvent event = Event(AddressEventKind::kNewBoot, "", {});
  event.count = earlier.size();
  RH_TRY(EventLog(*txn_).Note(std::move(event)));
  return earlier;
}

Result<std::optional<AddressRecord>> AddressLedger::HadBefore(const AddressPool& pool,
                                                              const AddressOwner& owner) const {
  const auto bytes = RH_TRY(txn_->Get(OwnerPrefix(owner) + pool.name));
  if (!bytes) return std::nullopt;
  const IpAddress address = RH_TRY(DecodeAddress(*bytes));
  auto record = RH_TRY(RecordOf(pool.name, address));
  if (!record || record->state != AddressState::kResting) return std::nullopt;
  if (store_ms_ >= record->since_ms + RestMilliseconds(pool)) return std::nullopt;
  return record;
}

Result<AddressRecord> AddressLedger::HoldAgain(const AddressPool& pool, const AddressRecord& resting) {
  StoredRuns runs(*txn_, pool.name);
  RH_TRY(Forget(runs, resting));
  return Give(runs, pool, resting.owner, resting.address);
}

Result<std::size_t> AddressLedger::Wake(const AddressPool& pool, std::size_t limit) {
  const std::size_t rested = RH_TRY(WakeQueue(pool, RestPrefix(pool.name), RestMilliseconds(pool), limit));
  return rested + RH_TRY(WakeQueue(pool, QuarantinePrefix(pool.name), 0, limit - rested));
}

Result<std::size_t> AddressLedger::WakeQueue(const AddressPool& pool, const std::string& prefix,
                                             std::uint64_t after_ms, std::size_t limit) {
  StoredRuns runs(*txn_, pool.name);
  for (std::size_t woken = 0; woken < limit; ++woken) {
    const auto oldest = RH_TRY(txn_->AtOrAfter(prefix));
    if (!oldest || !oldest->key.starts_with(prefix)) return woken;
    const RestEntry entry = RH_TRY(DecodeRestKey(pool.name, oldest->key));
    if (store_ms_ < entry.at_ms + after_ms) return woken;
    const auto record = RH_TRY(RecordOf(pool.name, entry.address));
    if (!record) return Fail(Contradiction("a resting address has no record"));
    RH_TRY(Forget(runs, *record));
  }
  return limit;
}

Result<std::optional<AddressRecord>> AddressLedger::RecordOf(const std::string& pool,
                                                             const IpAddress& address) const {
  const std::string key = AddressKey(pool, address);
  const auto bytes = RH_TRY(txn_->Get(key));
  if (!bytes) return std::nullopt;
  return RH_TRY(DecodeRecord(key, *bytes));
}

Result<void> AddressLedger::Forget(StoredRuns& runs, const AddressRecord& resting) {
  RH_TRY(txn_->Erase(resting.state == AddressState::kQuarantined
                         ? QuarantineKey(resting.pool, resting.until_ms, resting.address)
                         : RestKey(resting.pool, resting.since_ms, resting.address)));
  RH_TRY(txn_->Erase(AddressKey(resting.pool, resting.address)));
  const std::string owner_key = OwnerPrefix(resting.owner) + resting.pool;
  const auto last = RH_TRY(txn_->Get(owner_key));
  if (last && *last == Encode(resting.address)) RH_TRY(txn_->Erase(owner_key));
  return Free(runs, resting.address);
}

Result<std::optional<AddressRecord>> AddressLedger::HoldNext(const AddressPool& pool,
                                                             const AddressOwner& owner) {
  StoredRuns runs(*txn_, pool.name);
  const auto last_given = RH_TRY(LastGiven(pool));
  const auto address = RH_TRY(NextFree(pool.ranges, runs, last_given));
  if (!address) return std::nullopt;
  RH_TRY(txn_->Put(PoolKey(pool.name), Encode(*address)));
  return RH_TRY(Give(runs, pool, owner, *address));
}

Result<std::optional<std::vector<AddressRecord>>> AddressLedger::HoldAligned(
    const std::vector<const OwnerClaim*>& claims) {
  std::deque<StoredRuns> runs;
  std::vector<AlignedPool> pools;
  for (const OwnerClaim* claim : claims) {
    const AddressPool& pool = claim->pools.front();
    const auto last_given = RH_TRY(LastGiven(pool));
    runs.emplace_back(*txn_, pool.name);
    pools.push_back({&pool.ranges, &runs.back(), last_given});
  }
  const auto addresses = RH_TRY(NextAligned(pools));
  if (!addresses) return std::nullopt;
  std::vector<AddressRecord> held;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const AddressPool& pool = claims[i]->pools.front();
    RH_TRY(txn_->Put(PoolKey(pool.name), Encode((*addresses)[i])));
    held.push_back(RH_TRY(Give(runs[i], pool, claims[i]->owner, (*addresses)[i])));
  }
  return held;
}

Result<std::optional<AddressRecord>> AddressLedger::RestedLongest(const AddressPool& pool) const {
  const std::string prefix = RestPrefix(pool.name);
  for (std::string at = prefix;;) {
    const auto entry = RH_TRY(txn_->AtOrAfter(at));
    if (!entry || !entry->key.starts_with(prefix)) return std::nullopt;
    const RestEntry rest = RH_TRY(DecodeRestKey(pool.name, entry->key));
    if (pool.ranges.Contains(rest.address)) return RecordOf(pool.name, rest.address);
    at = entry->key + '\0';
  }
}

Result<std::optional<AddressRecord>> AddressLedger::HoldRested(const AddressPool& pool,
                                                               const AddressOwner& owner) {
  if (!pool.min_rest) return std::nullopt;
  const auto longest = RH_TRY(RestedLongest(pool));
  if (!longest || store_ms_ - longest->since_ms < Milliseconds(*pool.min_rest)) return std::nullopt;
  StoredRuns runs(*txn_, pool.name);
  RH_TRY(Forget(runs, *longest));
  RH_TRY(txn_->Put(PoolKey(pool.name), Encode(longest->address)));
  EventLog log(*txn_);
  AddressEvent event = Event(AddressEventKind::kRestShortened, pool.name, owner);
  event.address = longest->address;
  event.ms = store_ms_ - longest->since_ms;
  RH_TRY(log.Count(pool.name, &PoolCounters::rest_shortened));
  RH_TRY(log.Note(std::move(event)));
  return RH_TRY(Give(runs, pool, owner, longest->address));
}

AddressEvent AddressLedger::Event(AddressEventKind kind, const std::string& pool,
                                  const AddressOwner& owner) const {
  AddressEvent event;
  event.kind = kind;
  event.pool = pool;
  event.owner = owner;
  event.store_ms = store_ms_;
  event.wall_seconds = now_.wall_seconds;
  return event;
}

Result<void> AddressLedger::NoteExhausted(const OwnerClaim& claim) {
  EventLog log(*txn_);
  for (const AddressPool& pool : claim.pools) {
    RH_TRY(log.Count(pool.name, &PoolCounters::exhausted));
    RH_TRY(log.Note(Event(AddressEventKind::kExhausted, pool.name, claim.owner)));
  }
  return {};
}

Result<void> AddressLedger::NoteExtended(std::uint64_t pages) {
  EventLog log(*txn_);
  AddressEvent event = Event(AddressEventKind::kExtended, "", {});
  event.count = pages;
  RH_TRY(log.Count(&StoreCounters::extended));
  return log.Note(std::move(event));
}

Result<std::optional<IpAddress>> AddressLedger::LastGiven(const AddressPool& pool) const {
  const auto bytes = RH_TRY(txn_->Get(PoolKey(pool.name)));
  if (!bytes) return std::nullopt;
  return RH_TRY(DecodeAddress(*bytes));
}

Result<AddressRecord> AddressLedger::HoldThis(const AddressPool& pool, const AddressOwner& owner,
                                              const IpAddress& address) {
  StoredRuns runs(*txn_, pool.name);
  if (const auto found = RH_TRY(RecordOf(pool.name, address)); found) {
    if (found->state == AddressState::kHeld) return Fail(HeldByAnother(*found));
    const std::uint64_t end_ms = found->state == AddressState::kQuarantined
                                     ? found->until_ms
                                     : found->since_ms + RestMilliseconds(pool);
    if (store_ms_ < end_ms) return Fail(StillResting(*found, end_ms - store_ms_));
    RH_TRY(Forget(runs, *found));
  }
  return Give(runs, pool, owner, address);
}

Result<AddressRecord> AddressLedger::Give(StoredRuns& runs, const AddressPool& pool,
                                          const AddressOwner& owner, const IpAddress& address) {
  AddressRecord held;
  held.pool = pool.name;
  held.address = address;
  held.owner = owner;
  held.boot_id = now_.boot_id;
  held.since_ms = store_ms_;
  held.wall_seconds = now_.wall_seconds;
  RH_TRY(Take(runs, address));
  RH_TRY(txn_->Put(AddressKey(pool.name, address), Encode(held)));
  RH_TRY(txn_->Put(OwnerPrefix(owner) + pool.name, Encode(address)));
  RH_TRY(EventLog(*txn_).Count(pool.name, &PoolCounters::given));
  return held;
}

Result<Error> AddressLedger::Explain(const AddressPool& pool) const {
  return ExplainExhausted(*txn_, pool, store_ms_);
}

Result<void> AddressLedger::Stamp() {
  return txn_->Put(HeaderKey(), Encode(header_.After(now_)));
}

}  // namespace railhead::ipam
