// One transaction on the address store: the steps that AddressStore's operations are made of. Keeps
// addresses, owners, runs and the reuse queue in step.
//
// Cost: every step is a constant number of B-tree look-ups, with two exceptions. Only a failed allocation
// pays for Explain(). Only an exhausted pool pays for AllocateFromReuseDelay(), which passes over the
// addresses of the reuse queue that are outside of the pool's ranges.
// Ownership: borrows the transaction, which must outlive it; the caller commits after Stamp().
// Errors: as LmdbTxn; kIo when records contradict each other.
// Threads: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ipam/store/address_record.h"
#include "ipam/store/events.h"
#include "ipam/store/lmdb.h"
#include "ipam/store/runs.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AddressPool;
struct AddressRequest;

// The runs of one pool, kept in the transaction.
class StoredRuns : public RunMap {
 public:
  StoredRuns(LmdbTxn& txn, std::string_view pool) : txn_(txn), prefix_(RunPrefix(pool)) {}

  Result<std::optional<IpRange>> AtOrBefore(const IpAddress& address) override;
  Result<void> Put(const IpRange& run) override;
  Result<void> Erase(const IpAddress& first) override;

 private:
  LmdbTxn& txn_;
  std::string prefix_;
};

class AddressLedger {
 public:
  static Result<AddressLedger> Open(LmdbTxn& txn, const ClockReading& now);

  // The addresses that the owner holds, in all pools.
  [[nodiscard]] Result<std::vector<AddressRecord>> HeldBy(const AddressOwner& owner) const;
  // The same, with those of its links.
  [[nodiscard]] Result<std::vector<AddressRecord>> HeldByAttachment(const AddressOwner& owner) const;
  // All held addresses.
  [[nodiscard]] Result<std::vector<AddressRecord>> AllHeld() const;

  // held -> cooling down
  Result<void> Release(const AddressRecord& held);
  // held -> cooling down, for all addresses of earlier boots; their earlier records. Until the reuse delay is
  // over the owner can get its address again: AllocatePrevious().
  Result<std::vector<AddressRecord>> ReleaseEarlierBoots();
  // held -> quarantined, for `time`; the record as it is then.
  Result<AddressRecord> Quarantine(const AddressRecord& held, std::chrono::seconds time);
  // Whether one more of the pool's addresses may be in quarantine: a quarter of them at most. Those that
  // are there for longer than kDefaultQuarantine were imported and do not count.
  [[nodiscard]] Result<bool> MayQuarantine(const AddressPool& pool) const;
  // cooling down or quarantined -> free, for at most `limit` addresses whose time is over; how many.
  Result<std::size_t> FreeExpired(const AddressPool& pool, std::size_t limit);
  // free -> held, the next one of the order; nullopt when nothing is free.
  Result<std::optional<AddressRecord>> AllocateNext(const AddressPool& pool, const AddressOwner& owner);
  // free -> held for all of the requests. Each gets an address of its first pool, all with the same host
  // part. If no such addresses are found, the result is nullopt, and nothing has changed
  // (ipam/store/range.h).
  Result<std::optional<std::vector<AddressRecord>>> AllocateAligned(
      const std::vector<const AddressRequest*>& requests);
  // cooling down -> held, before the reuse delay is over: the address that was released first, if the pool's
  // `min_reuse_delay` has passed; else nullopt.
  Result<std::optional<AddressRecord>> AllocateFromReuseDelay(const AddressPool& pool,
                                                              const AddressOwner& owner);
  // free -> held, out of the order. An address that is held, cools down or is in quarantine: kBusy.
  Result<AddressRecord> AllocateSpecific(const AddressPool& pool, const AddressOwner& owner,
                                         const IpAddress& address);

  // The address that a reboot took from `owner`; nullopt: none, or its reuse delay is over.
  [[nodiscard]] Result<std::optional<AddressRecord>> FindPrevious(const AddressPool& pool,
                                                                  const AddressOwner& owner) const;
  // cooling down -> held, for the interface that had the only address of the pool last; nullopt: another one
  // had it, or it is not free.
  Result<std::optional<AddressRecord>> AllocateToLastDevice(const AddressPool& pool,
                                                            const AddressRequest& request);
  // Notes the interface that has the only address of its pool.
  Result<void> NoteDevice(const AddressRequest& request, const AddressRecord& held);
  // cooling down -> held, by its previous owner.
  Result<AddressRecord> AllocatePrevious(const AddressPool& pool, const AddressRecord& previous);
  // Why the pool has no address: how many are held, how many cool down, and until when.
  [[nodiscard]] Result<Error> Explain(const AddressPool& pool) const;

  // Records the event that the request's pools have no address.
  Result<void> NoteExhausted(const AddressRequest& request);

  [[nodiscard]] std::uint64_t store_ms() const { return store_ms_; }

  // The header for this moment: before Commit().
  Result<void> Stamp();

 private:
  AddressLedger(LmdbTxn& txn, ClockReading now, StoreHeader header)
      : txn_(&txn), now_(std::move(now)), header_(std::move(header)), store_ms_(header_.StoreTime(now_)) {}

  // Of the pool's addresses that cool down, the one that was released first.
  [[nodiscard]] Result<std::optional<AddressRecord>> OldestReleased(const AddressPool& pool) const;
  [[nodiscard]] Result<std::optional<IpAddress>> LastAllocated(const AddressPool& pool) const;
  // Gives the free address to the owner.
  Result<AddressRecord> Assign(StoredRuns& runs, const AddressPool& pool, const AddressOwner& owner,
                               const IpAddress& address);
  // cooling down or quarantined -> free
  Result<void> Free(StoredRuns& runs, const AddressRecord& record);
  // held -> cooling down; the owner's entry stays.
  Result<void> ReleaseKeepingOwner(const AddressRecord& held);
  // FreeExpired() for the queue under `prefix`: an address is free `after_ms` after the time in its key.
  Result<std::size_t> FreeExpiredOf(const AddressPool& pool, const std::string& prefix,
                                    std::uint64_t after_ms, std::size_t limit);
  [[nodiscard]] Result<std::optional<AddressRecord>> RecordOf(const std::string& pool,
                                                              const IpAddress& address) const;
  // The held addresses of the owners whose keys start with `prefix`.
  [[nodiscard]] Result<std::vector<AddressRecord>> HeldUnder(const std::string& prefix) const;

  // An event of now.
  [[nodiscard]] AddressEvent Event(AddressEventKind kind, const std::string& pool,
                                   const AddressOwner& owner) const;

  LmdbTxn* txn_;
  ClockReading now_;
  StoreHeader header_;  // of the commit before
  std::uint64_t store_ms_;
};

// Reads the header, or explains why this is not an address store.
Result<StoreHeader> ReadHeader(const LmdbTxn& txn);

}  // namespace railhead::ipam
