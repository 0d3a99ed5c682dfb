// The node's address store: held addresses and their owners, released addresses, the next address.
//
// One file, /var/lib/railhead/ipam/store.mdb (LMDB), used by many short-lived processes without a daemon. An
// AddressStore is open and locked: others wait while it exists, so make it, use it, drop it. Every operation
// is one durable transaction: killed anywhere, it has happened or not.
//
// An address is free, held, in quarantine, or cooling down: released less than the pool's reuse delay ago.
// Order: see ipam/store/range.h. A pool without another address reuses one early: the address that was
// released first, once `min_reuse_delay` has passed. That is counted, and an event.
// Errors: kExhausted with the numbers of the pool; kTimeout when the lock is held for too long. Also kIo for
// a damaged store; kInvalid for names that cannot be a key. After an error nothing has changed, except that
// an exhausted pool is counted.
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
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"

namespace railhead::ipam {

// This boot's id and the clocks of this machine.
Result<ClockReading> ReadClocks(const Root& root);

// The store's source of the time. The store reads it under its lock: a reading from before the wait for the
// lock could be older than the previous commit's. Tests pass their own.
using ClockSource = std::function<Result<ClockReading>()>;

// This node's part of a rail: ipam/store/rail_part.h.
struct RailPart {
  std::string rail;
  std::vector<IpRange> ranges;          // sorted and disjoint
  std::chrono::seconds reuse_delay{0};  // the fabric's
};

struct AddressPool {
  std::string name;  // the subnet
  RangeSet ranges;
  std::chrono::seconds reuse_delay{0};
  // After so long a released address is reused if the pool has no other; nullopt: never.
  std::optional<std::chrono::seconds> min_reuse_delay = {};
  std::optional<RailPart> part = {};  // that the ranges are of
};

// One address for `owner`.
struct AddressRequest {
  AddressOwner owner;
  std::vector<AddressPool> pools;          // never empty: the address is of the first that has any
  std::optional<IpAddress> fixed_address;  // this address or none; in one of the pools' ranges
  // With the same host part as the other aligned requests, where possible (ipam/store/range.h).
  bool aligned = false;
  // Of the interface. It gets the only address of a pool at once if it had it last
  // (ipam/store/last_device.h).
  std::optional<MacAddress> mac = {};
};

inline constexpr std::chrono::seconds kDefaultQuarantine{3600};
// For an address that was found in use once: the probe may have met an attacker, or a host that is going
// away.
inline constexpr std::chrono::seconds kFirstQuarantine{600};

// Selects the addresses that ReleaseWhere() releases.
using AddressFilter = std::function<bool(const AddressRecord& held)>;

class AddressStore {
 public:
  // Makes the store if it does not exist.
  // `clocks`: without any, ReadClocks(root).
  static Result<AddressStore> Open(const Root& root, ClockSource clocks = {});
  // nullopt: the store does not exist, so nothing is held.
  static Result<std::optional<AddressStore>> OpenExisting(const Root& root, ClockSource clocks = {});

  // Whether Open() could make a missing store; makes nothing.
  static Result<void> CheckPlace(const Root& root);

  // For each request: the address that its owner holds in its pools, or the fixed one, or the next one. One
  // transaction allocates all of them, or none. An owner's address outside of the pool's present ranges, or
  // in place of the fixed one, is released first. An owner gets its address of before a reboot again, until
  // the reuse delay is over. A fixed address that another owner holds, or that cools down: kBusy; likewise
  // while no address of a changed part may be given. Without a fixed address and with none in any of the
  // pools: kExhausted.
  Result<std::vector<AddressRecord>> Allocate(const std::vector<AddressRequest>& requests);
  Result<AddressRecord> Allocate(const AddressOwner& owner, const AddressPool& pool);
  // Notes which part of each rail this node has now (ipam/store/rail_part.h). Allocate() notes those of its
  // pools.
  Result<void> NoteParts(const std::vector<RailPart>& parts);
  // Whether Allocate() would succeed; allocates and writes nothing.
  Result<void> TryAllocate(const std::vector<AddressRequest>& requests);

  // Releases the addresses of earlier boots, since no network namespace survives a reboot. Returns their
  // earlier records. The first writing operation of a boot does the same in a transaction of its own; later
  // calls find nothing to do.
  Result<std::vector<AddressRecord>> ReleaseEarlierBoots();

  // Quarantines an address that the owner or one of its links holds, for `time`, whatever its pool's reuse
  // delay: another machine uses it. List() has it, and it is an event. kNotFound when the owner does not hold
  // it.
  Result<AddressRecord> Quarantine(const AddressOwner& owner, const IpAddress& address,
                                   std::chrono::seconds time = kDefaultQuarantine);

  // The same for an address of `pool`, while no more than a quarter of the pool's addresses is in
  // quarantine; else nothing changes. Whether it was taken out of use.
  Result<bool> QuarantineWithin(const AddressPool& pool, const AddressOwner& owner, const IpAddress& address,
                                std::chrono::seconds time);

  // Releases all addresses of the owner and its links, in all pools; how many.
  Result<std::size_t> Release(const AddressOwner& owner);
  // Releases every held address that `filter` selects; their earlier records.
  Result<std::vector<AddressRecord>> ReleaseWhere(const AddressFilter& filter);

  // The addresses of the owner and its links.
  [[nodiscard]] Result<std::vector<AddressRecord>> Find(const AddressOwner& owner) const;

  // Now, by the store's clock.
  [[nodiscard]] Result<StoreMoment> Now() const;
  // All addresses of all pools that are not free.
  [[nodiscard]] Result<std::vector<AddressRecord>> List() const;

  // For metrics, by pool; and for operators: events with numbers above `after`, oldest first
  // (ipam/store/events.h). A new store starts again with number 1.
  [[nodiscard]] Result<std::map<std::string, PoolCounters>> Counters() const;
  [[nodiscard]] Result<std::vector<AddressEvent>> Events(std::uint64_t after) const;

  // One transaction on the file's other records; durable when `change` answers true.
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
