#include "ipam/store/ledger.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "ipam/store/aligned.h"
#include "ipam/store/held_addresses.h"
#include "ipam/store/last_device.h"
#include "ipam/store/runs.h"
#include "ipam/store/store.h"
#include "ipam/store/store_errors.h"
#include "netns/base/bytes.h"

namespace railhead::ipam {
namespace {

Error Contradiction(const std::string& what) {
  return {ErrorCode::kIo, "address store: " + what, "the store is damaged: restore it from a backup", 0};
}

std::uint64_t ReuseDelayMs(const AddressPool& pool) {
  return Milliseconds(pool.reuse_delay);
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
    // An address that was released by a reboot still has its owner's entry.
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

Result<void> AddressLedger::Release(const AddressRecord& held) {
  RH_TRY(txn_->Erase(OwnerPrefix(held.owner) + held.pool));
  return ReleaseKeepingOwner(held);
}

Result<void> AddressLedger::ReleaseKeepingOwner(const AddressRecord& held) {
  AddressRecord released = held;
  released.state = AddressState::kCoolingDown;
  released.since_ms = store_ms_;
  released.wall_seconds = now_.wall_seconds;
  RH_TRY(txn_->Put(AddressKey(held.pool, held.address), Encode(released)));
  RH_TRY(EventLog(*txn_).Count(held.pool, &PoolCounters::released));
  return txn_->Put(ReuseQueueKey(held.pool, store_ms_, held.address), "");
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
    const QueueEntry one = RH_TRY(DecodeQueueKey(pool.name, entry.key));
    const bool counts = one.at_ms > store_ms_ && one.at_ms - store_ms_ <= Milliseconds(kDefaultQuarantine);
    if (counts && pool.ranges.Contains(one.address)) ++apart;
  }
  return apart < pool.ranges.Size() / kPart;
}

Result<std::vector<AddressRecord>> AddressLedger::ReleaseEarlierBoots() {
  std::vector<AddressRecord> earlier = RH_TRY(AllHeld());
  std::erase_if(earlier, [&](const AddressRecord& record) { return record.boot_id == now_.boot_id; });
  for (const AddressRecord& record : earlier) RH_TRY(ReleaseKeepingOwner(record));
  if (earlier.empty()) return earlier;
  AddressEvent event = Event(AddressEventKind::kNewBoot, "", {});
  event.count = earlier.size();
  RH_TRY(EventLog(*txn_).Note(std::move(event)));
  return earlier;
}

Result<std::optional<AddressRecord>> AddressLedger::FindPrevious(const AddressPool& pool,
                                                                 const AddressOwner& owner) const {
  const auto bytes = RH_TRY(txn_->Get(OwnerPrefix(owner) + pool.name));
  if (!bytes) return std::nullopt;
  const IpAddress address = RH_TRY(DecodeAddress(*bytes));
  auto record = RH_TRY(RecordOf(pool.name, address));
  if (!record || record->state != AddressState::kCoolingDown) return std::nullopt;
  if (store_ms_ >= record->since_ms + ReuseDelayMs(pool)) return std::nullopt;
  return record;
}

Result<AddressRecord> AddressLedger::AllocatePrevious(const AddressPool& pool,
                                                      const AddressRecord& previous) {
  StoredRuns runs(*txn_, pool.name);
  RH_TRY(Free(runs, previous));
  return Assign(runs, pool, previous.owner, previous.address);
}

Result<std::optional<AddressRecord>> AddressLedger::AllocateToLastDevice(const AddressPool& pool,
                                                                         const AddressRequest& request) {
  if (!RH_TRY(HadItLast(*txn_, pool, request))) return std::nullopt;
  const auto released = RH_TRY(OldestReleased(pool));
  if (!released) return std::nullopt;
  StoredRuns runs(*txn_, pool.name);
  RH_TRY(Free(runs, *released));
  return RH_TRY(Assign(runs, pool, request.owner, released->address));
}

Result<void> AddressLedger::NoteDevice(const AddressRequest& request, const AddressRecord& held) {
  const auto pool = std::ranges::find(request.pools, held.pool, &AddressPool::name);
  return pool == request.pools.end() ? Result<void>() : NoteLastDevice(*txn_, *pool, request);
}

Result<std::size_t> AddressLedger::FreeExpired(const AddressPool& pool, std::size_t limit) {
  const std::size_t reusable =
      RH_TRY(FreeExpiredOf(pool, ReuseQueuePrefix(pool.name), ReuseDelayMs(pool), limit));
  return reusable + RH_TRY(FreeExpiredOf(pool, QuarantinePrefix(pool.name), 0, limit - reusable));
}

Result<std::size_t> AddressLedger::FreeExpiredOf(const AddressPool& pool, const std::string& prefix,
                                                 std::uint64_t after_ms, std::size_t limit) {
  StoredRuns runs(*txn_, pool.name);
  for (std::size_t freed = 0; freed < limit; ++freed) {
    const auto oldest = RH_TRY(txn_->AtOrAfter(prefix));
    if (!oldest || !oldest->key.starts_with(prefix)) return freed;
    const QueueEntry entry = RH_TRY(DecodeQueueKey(pool.name, oldest->key));
    if (store_ms_ < entry.at_ms + after_ms) return freed;
    const auto record = RH_TRY(RecordOf(pool.name, entry.address));
    if (!record) return Fail(Contradiction("an address of the reuse queue has no record"));
    RH_TRY(Free(runs, *record));
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

Result<void> AddressLedger::Free(StoredRuns& runs, const AddressRecord& record) {
  RH_TRY(txn_->Erase(record.state == AddressState::kQuarantined
                         ? QuarantineKey(record.pool, record.until_ms, record.address)
                         : ReuseQueueKey(record.pool, record.since_ms, record.address)));
  RH_TRY(txn_->Erase(AddressKey(record.pool, record.address)));
  const std::string owner_key = OwnerPrefix(record.owner) + record.pool;
  const auto last = RH_TRY(txn_->Get(owner_key));
  if (last && *last == Encode(record.address)) RH_TRY(txn_->Erase(owner_key));
  return ipam::Free(runs, record.address);
}

Result<std::optional<AddressRecord>> AddressLedger::AllocateNext(const AddressPool& pool,
                                                                 const AddressOwner& owner) {
  StoredRuns runs(*txn_, pool.name);
  const auto last_allocated = RH_TRY(LastAllocated(pool));
  const auto address = RH_TRY(NextFree(pool.ranges, runs, last_allocated));
  if (!address) return std::nullopt;
  RH_TRY(txn_->Put(PoolKey(pool.name), Encode(*address)));
  return RH_TRY(Assign(runs, pool, owner, *address));
}

Result<std::optional<std::vector<AddressRecord>>> AddressLedger::AllocateAligned(
    const std::vector<const AddressRequest*>& requests) {
  std::deque<StoredRuns> runs;
  std::vector<AlignedPool> pools;
  for (const AddressRequest* request : requests) {
    const AddressPool& pool = request->pools.front();
    const auto last_allocated = RH_TRY(LastAllocated(pool));
    runs.emplace_back(*txn_, pool.name);
    pools.push_back({&pool.ranges, &runs.back(), last_allocated});
  }
  const auto addresses = RH_TRY(NextAligned(pools));
  if (!addresses) return std::nullopt;
  std::vector<AddressRecord> held;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const AddressPool& pool = requests[i]->pools.front();
    RH_TRY(txn_->Put(PoolKey(pool.name), Encode((*addresses)[i])));
    held.push_back(RH_TRY(Assign(runs[i], pool, requests[i]->owner, (*addresses)[i])));
  }
  return held;
}

Result<std::optional<AddressRecord>> AddressLedger::OldestReleased(const AddressPool& pool) const {
  const std::string prefix = ReuseQueuePrefix(pool.name);
  for (std::string at = prefix;;) {
    const auto entry = RH_TRY(txn_->AtOrAfter(at));
    if (!entry || !entry->key.starts_with(prefix)) return std::nullopt;
    const QueueEntry released = RH_TRY(DecodeQueueKey(pool.name, entry->key));
    if (pool.ranges.Contains(released.address)) return RecordOf(pool.name, released.address);
    at = entry->key + '\0';
  }
}

Result<std::optional<AddressRecord>> AddressLedger::AllocateFromReuseDelay(const AddressPool& pool,
                                                                           const AddressOwner& owner) {
  if (!pool.min_reuse_delay) return std::nullopt;
  const auto oldest = RH_TRY(OldestReleased(pool));
  if (!oldest || store_ms_ - oldest->since_ms < Milliseconds(*pool.min_reuse_delay)) return std::nullopt;
  StoredRuns runs(*txn_, pool.name);
  RH_TRY(Free(runs, *oldest));
  RH_TRY(txn_->Put(PoolKey(pool.name), Encode(oldest->address)));
  EventLog log(*txn_);
  AddressEvent event = Event(AddressEventKind::kEarlyReuse, pool.name, owner);
  event.address = oldest->address;
  event.ms = store_ms_ - oldest->since_ms;
  RH_TRY(log.Count(pool.name, &PoolCounters::early_reuses));
  RH_TRY(log.Note(std::move(event)));
  return RH_TRY(Assign(runs, pool, owner, oldest->address));
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

Result<void> AddressLedger::NoteExhausted(const AddressRequest& request) {
  EventLog log(*txn_);
  for (const AddressPool& pool : request.pools) {
    RH_TRY(log.Count(pool.name, &PoolCounters::exhausted));
    RH_TRY(log.Note(Event(AddressEventKind::kExhausted, pool.name, request.owner)));
  }
  return {};
}

Result<std::optional<IpAddress>> AddressLedger::LastAllocated(const AddressPool& pool) const {
  const auto last = RH_TRY(txn_->Get(PoolKey(pool.name)));
  if (last) return RH_TRY(DecodeAddress(*last));
  const auto start = RH_TRY(txn_->Get(StartKey()));
  if (!start) return std::nullopt;
  bytes::Reader reader(*start);
  const std::uint64_t index = reader.Number() % pool.ranges.Size();
  return index == 0 ? std::nullopt : pool.ranges.At(index - 1);
}

Result<AddressRecord> AddressLedger::AllocateSpecific(const AddressPool& pool, const AddressOwner& owner,
                                                      const IpAddress& address) {
  StoredRuns runs(*txn_, pool.name);
  if (const auto found = RH_TRY(RecordOf(pool.name, address)); found) {
    if (found->state == AddressState::kHeld) return Fail(HeldByAnother(*found));
    const std::uint64_t end_ms =
        found->state == AddressState::kQuarantined ? found->until_ms : found->since_ms + ReuseDelayMs(pool);
    if (store_ms_ < end_ms) return Fail(NotYetReusable(*found, end_ms - store_ms_));
    RH_TRY(Free(runs, *found));
  }
  return Assign(runs, pool, owner, address);
}

Result<AddressRecord> AddressLedger::Assign(StoredRuns& runs, const AddressPool& pool,
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
  RH_TRY(EventLog(*txn_).Count(pool.name, &PoolCounters::allocated));
  return held;
}

Result<Error> AddressLedger::Explain(const AddressPool& pool) const {
  return ExplainExhausted(*txn_, pool, store_ms_);
}

Result<void> AddressLedger::Stamp() {
  return txn_->Put(HeaderKey(), Encode(header_.After(now_)));
}

}  // namespace railhead::ipam
