// One transaction on the address store: the steps that AddressStore's
// operations are made of. Keeps addresses, owners, runs and the rest queue in step.
//
// Cost: every step is a constant number of B-tree look-ups, except Explain(),
// which only a failed allocation pays, and HoldRested(), which passes over the resting
// addresses that are outside of the pool's ranges: only an exhausted pool pays for that.
// Ownership: borrows the transaction, which must outlive it; the caller commits
// after Stamp(). Errors: as LmdbTxn; kIo when records contradict each other.
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
#include "ipam/store/range.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AddressPool;
struct OwnerClaim;

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

  // What the owner holds, in all pools.
  [[nodiscard]] Result<std::vector<AddressRecord>> HeldBy(const AddressOwner& owner) const;
  // The same, and what its links hold.
  [[nodiscard]] Result<std::vector<AddressRecord>> HeldByAttachment(const AddressOwner& owner) const;
  // What anybody holds.
  [[nodiscard]] Result<std::vector<AddressRecord>> AllHeld() const;

  // held -> resting
  Result<void> Rest(const AddressRecord& held);
  // held -> resting, for all that is held since an earlier boot; these, as they were. The owner
  // itself may have its address again until its rest is over: HoldAgain().
  Result<std::vector<AddressRecord>> RestEarlierBoots();
  // held -> quarantined, for `time`; the record as it is then.
  Result<AddressRecord> Quarantine(const AddressRecord& held, std::chrono::seconds time);
  // Whether one more of the pool's addresses may be in quarantine: a quarter of them at most. Those that
  // are there for longer than kDefaultQuarantine were imported and do not count.
  [[nodiscard]] Result<bool> MayQuarantine(const AddressPool& pool) const;
  // resting or quarantined -> free, for at most `limit` addresses whose time is over; how many.
  Result<std::size_t> Wake(const AddressPool& pool, std::size_t limit);
  // free -> held, the next one of the order; nullopt when nothing is free.
  Result<std::optional<AddressRecord>> HoldNext(const AddressPool& pool, const AddressOwner& owner);
  // free -> held for all of the claims, each of the first of its pools, with the same host part;
  // nullopt, and nothing has changed, when no such addresses are found (ipam/store/range.h).
  Result<std::optional<std::vector<AddressRecord>>> HoldAligned(const std::vector<const OwnerClaim*>& claims);
  // resting -> held, before its rest is over: that which has rested longest, if it has rested
  // for the pool's `min_rest`; nullopt: none has.
  Result<std::optional<AddressRecord>> HoldRested(const AddressPool& pool, const AddressOwner& owner);
  // free -> held, out of the order. An address that is held or whose rest is not over: kBusy.
  Result<AddressRecord> HoldThis(const AddressPool& pool, const AddressOwner& owner,
                                 const IpAddress& address);

  // What rests since a reboot, and its owner was `owner`; nullopt: nothing, or its rest is over.
  [[nodiscard]] Result<std::optional<AddressRecord>> HadBefore(const AddressPool& pool,
                                                               const AddressOwner& owner) const;
  // resting -> held, by the owner that had it before.
  Result<AddressRecord> HoldAgain(const AddressPool& pool, const AddressRecord& resting);
  // Why the pool has no address: how many are held, resting, and until when.
  [[nodiscard]] Result<Error> Explain(const AddressPool& pool) const;

  // That the claim's pools have no address.
  Result<void> NoteExhausted(const OwnerClaim& claim);
  // That the file was `pages` short (LmdbEnv::pages_short()).
  Result<void> NoteExtended(std::uint64_t pages);

  // The header for this moment: before Commit().
  Result<void> Stamp();

 private:
  AddressLedger(LmdbTxn& txn, ClockReading now, StoreHeader header)
      : txn_(&txn), now_(std::move(now)), header_(std::move(header)), store_ms_(header_.StoreTime(now_)) {}

  // That of the addresses that may be given which has rested longest.
  [[nodiscard]] Result<std::optional<AddressRecord>> RestedLongest(const AddressPool& pool) const;
  [[nodiscard]] Result<std::optional<IpAddress>> LastGiven(const AddressPool& pool) const;
  // The address, which is free, is the owner's from now on.
  Result<AddressRecord> Give(StoredRuns& runs, const AddressPool& pool, const AddressOwner& owner,
                             const IpAddress& address);
  // resting or quarantined -> free
  Result<void> Forget(StoredRuns& runs, const AddressRecord& resting);
  // held -> resting, and its owner's entry stays.
  Result<void> RestForOwner(const AddressRecord& held);
  // Wake() for the queue under `prefix`, whose addresses may go `after_ms` after their time.
  Result<std::size_t> WakeQueue(const AddressPool& pool, const std::string& prefix, std::uint64_t after_ms,
                                std::size_t limit);
  [[nodiscard]] Result<std::optional<AddressRecord>> RecordOf(const std::string& pool,
                                                              const IpAddress& address) const;
  // Of the owners whose keys start so.
  [[nodiscard]] Result<std::vector<AddressRecord>> HeldUnder(const std::string& prefix) const;

  // An event of now.
  [[nodiscard]] AddressEvent Event(AddressEventKind kind, const std::string& pool,
                                   const AddressOwner& owner) const;

  LmdbTxn* txn_;
  ClockReading now_;
  StoreHeader header_;  // of the commit before
  std::uint64_t store_ms_;
};

// Reads the header, or explains why this is no address store.
Result<StoreHeader> ReadHeader(const LmdbTxn& txn);

}  // namespace railhead::ipam
