// The node's address store: who holds which address, what rests, what is next.
//
// One file, /var/lib/railhead/ipam/store.mdb (LMDB), used by many short-lived
// processes without a daemon. An AddressStore is open and locked: others wait
// while it exists, so make it, use it, drop it. Every operation is one durable
// transaction: killed anywhere, it has happened or not.
//
// An address is free, held, in quarantine, or resting: released less than the pool's rest time
// ago. Order: see ipam/store/range.h. Only a pool that has no other address gives one that
// still rests: that which has rested longest, once its `min_rest` has passed; it is counted and
// told as an event.
// Errors: kExhausted with the numbers of the pool; kTimeout when the lock is
// held for too long; kIo for a damaged store; kInvalid for names that cannot
// be a key. After an error nothing has changed, but that an exhausted pool is counted.
// Threads: one AddressStore per thread; they exclude each other by the lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam/store/address_record.h"
#include "ipam/store/events.h"
#include "ipam/store/lmdb.h"
#include "ipam/store/range.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/state_folder.h"

namespace railhead::ipam {

// This boot's id and the clocks of this machine.
Result<ClockReading> ReadClocks(const Root& root);

// What the store asks for the time, under its lock: a reading that waited for the lock is older than
// that of the commit before. Tests give their own.
using ClockSource = std::function<Result<ClockReading>()>;

struct AddressPool {
  std::string name;  // the subnet
  RangeSet ranges;
  std::chrono::seconds rest{0};
  // An address that has rested for so long is given when there is no other; nullopt: never.
  std::optional<std::chrono::seconds> min_rest = {};
  bool leased = false;  // only what is in this node's usable blocks: ipam/store/node_blocks.h
};

// One address for `owner`.
struct OwnerClaim {
  AddressOwner owner;
  std::vector<AddressPool> pools;   // never empty: the first that has an address gives it
  std::optional<IpAddress> wanted;  // this address or none; in one of the pools' ranges
  // With the same host part as the others that say so, where possible (ipam/store/range.h).
  bool aligned = false;
};

inline constexpr std::chrono::seconds kDefaultQuarantine{3600};
// Of an address that was found in use once: one probe may have met an attacker, or a host that goes.
inline constexpr std::chrono::seconds kFirstQuarantine{600};

// What a caller of ReleaseWhere() wants released.
using AddressFilter = std::function<bool(const AddressRecord& held)>;

class AddressStore {
 public:
  // Makes the store where there is none. A file that is shorter than it counts, but has every page
  // that is in use, is extended; that is counted and told as an event.
  // `clocks`: without any, ReadClocks(root).
  static Result<AddressStore> Open(const Root& root, ClockSource clocks = {});
  // nullopt: there is no store, so nothing is held.
  static Result<std::optional<AddressStore>> OpenExisting(const Root& root, ClockSource clocks = {});

  // Whether Open() could make the store where there is none; makes nothing.
  static Result<void> CheckPlace(const Root& root);

  // For each claim the address that its owner holds in its pools, or the one wanted, or the
  // next one: all of them in one transaction, or none. What an owner holds of a pool outside
  // of its present ranges, or in place of the one wanted, is put to rest first. What it held
  // before a reboot and what still rests since then, it gets again. An address that is wanted and
  // held by another, or still rests: kBusy. Without one wanted and with none in any of the
  // pools: kExhausted.
  Result<std::vector<AddressRecord>> Allocate(const std::vector<OwnerClaim>& claims);
  Result<AddressRecord> Allocate(const AddressOwner& owner, const AddressPool& pool);
  // Whether Allocate() would succeed; gives nothing and writes nothing.
  Result<void> TryAllocate(const std::vector<OwnerClaim>& claims);

  // Puts to rest what earlier boots hold, since no network namespace survives a reboot; these,
  // as they were. The first operation of a boot that writes does it by itself, in a transaction of
  // its own; after that there is nothing to do.
  Result<std::vector<AddressRecord>> RestEarlierBoots();

  // Takes an address that the owner or one of its links holds out of use for `time`, whatever its
  // pool's rest: another machine uses it. It is told by List() and as an event. kNotFound when the
  // owner does not hold it.
  Result<AddressRecord> Quarantine(const AddressOwner& owner, const IpAddress& address,
                                   std::chrono::seconds time = kDefaultQuarantine);

  // The same for an address of `pool`, while no more than a quarter of what the pool can give is in
  // quarantine; else nothing changes. Whether it was taken out of use.
  Result<bool> QuarantineWithin(const AddressPool& pool, const AddressOwner& owner, const IpAddress& address,
                                std::chrono::seconds time);

  // Puts to rest all that the owner and its links hold, in whichever pool; how many.
  Result<std::size_t> Release(const AddressOwner& owner);
  // Puts to rest every held address that `wanted` says; these, as they were.
  Result<std::vector<AddressRecord>> ReleaseWhere(const AddressFilter& wanted);

  // What the owner and its links hold.
  [[nodiscard]] Result<std::vector<AddressRecord>> Find(const AddressOwner& owner) const;

  // Now, by the store's clock.
  [[nodiscard]] Result<StoreMoment> Now() const;
  // All addresses of all pools that are not free.
  [[nodiscard]] Result<std::vector<AddressRecord>> List() const;

  // For metrics, by pool; and what an operator has to know: events with numbers above `after`,
  // oldest first (ipam/store/events.h). Numbers start anew with a store that is made anew.
  [[nodiscard]] Result<std::map<std::string, PoolCounters>> Counters() const;
  [[nodiscard]] Result<StoreCounters> OwnCounters() const;
  [[nodiscard]] Result<std::vector<AddressEvent>> Events(std::uint64_t after) const;

  // One transaction on what else is kept in the file; durable when `change` answers true.
  using Change = std::function<Result<bool>(LmdbTxn& txn, const ClockReading& now)>;
  Result<void> Transact(const Change& change);

  // Contradictions between the records, as sentences; empty when sound.
  [[nodiscard]] Result<std::vector<std::string>> Verify() const;

 private:
  AddressStore(FileLock lock, LmdbEnv env, ClockSource clocks)
      : lock_(std::move(lock)), env_(std::move(env)), clocks_(std::move(clocks)) {}

  // Destroyed in reverse order: the lock outlives the environment.
  FileLock lock_;
  LmdbEnv env_;
  ClockSource clocks_;
};

}  // namespace railhead::ipam
