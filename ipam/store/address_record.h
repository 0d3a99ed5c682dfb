// What the address store keeps: its values and keys as bytes.
//
// One LMDB table. The first byte of a key is the kind of the entry. Numbers are big-endian, so that bytes
// sort as values do.
//
//   header (store)    'S'                                -> StoreHeader
//   start             'W'                                -> where pools begin, a number
//   pool              'P' pool                           -> last allocated address
//   run               'R' pool NUL first                 -> last
//   reuse queue       'T' pool NUL since address         -> (empty)
//   quarantine        'U' pool NUL until address         -> (empty)
//   address           'A' pool NUL address               -> AddressRecord
//   owner             'O' network NUL container NUL ifname NUL pool -> address, which is held or
//                                                           was released by a reboot
//   counters, events  'Q' ..., 'E' ...                   -> ipam/store/events.h
//   last device       'M' ...                            -> ipam/store/last_device.h
//   part of a rail    'N' ...                            -> ipam/store/rail_part.h
//   blocks            'B' ...                            of earlier versions: ipam/store/former_blocks.h
//
// A pool is named by its subnet ("10.100.0.0/24"): networks that share a physical subnet share its addresses.
// Time is store time (see StoreHeader): milliseconds that neither a change of the wall clock nor a reboot
// sets back.
// Errors: decoding fails with kIo: the store is damaged.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

// The owner of an address: one interface of one container in one network. If an attachment has several links,
// `ifname` is "CNI_IFNAME/LINK". An interface name cannot have a '/', so the links of "eth1" are never taken
// for those of "eth10".
struct AddressOwner {
  std::string network;
  std::string container;
  std::string ifname;

  bool operator==(const AddressOwner&) const = default;
};

enum class AddressState : std::uint8_t {
  kHeld = 1,
  kCoolingDown = 2,  // released; not allocated before its reuse delay is over
  kQuarantined = 3,  // found in use by another machine; not allocated before `until_ms`
};

// The owner of one link's address; of the attachment's own for an empty link.
AddressOwner LinkOwner(AddressOwner attachment, std::string_view link);
// CNI_IFNAME: the part of `ifname` before the '/'.
std::string_view AttachmentIfname(const AddressOwner& owner);
// The part of `ifname` after the '/'; empty for the attachment itself.
std::string_view LinkName(const AddressOwner& owner);

struct AddressRecord {
  std::string pool;
  IpAddress address;
  AddressState state = AddressState::kHeld;
  AddressOwner owner;             // of a released address: the last one
  std::string boot_id;            // the boot in which it was asked for last
  std::uint64_t since_ms = 0;     // store time of the last change of state
  std::int64_t wall_seconds = 0;  // Unix time of the same, for people
  std::uint64_t until_ms = 0;     // store time when a quarantine is over

  bool operator==(const AddressRecord&) const = default;
};

// Now, as the machine tells it.
struct ClockReading {
  std::string boot_id;
  std::uint64_t boottime_ms = 0;  // CLOCK_BOOTTIME
  std::int64_t wall_seconds = 0;  // CLOCK_REALTIME
};

// The same by the store's clock.
struct StoreMoment {
  ClockReading clocks;
  std::uint64_t store_ms = 0;

  // Since `record` was allocated, released or put into quarantine.
  [[nodiscard]] std::chrono::milliseconds AgeOf(const AddressRecord& record) const {
    return std::chrono::milliseconds(store_ms - std::min(store_ms, record.since_ms));
  }
};

// The store's clock advances with CLOCK_BOOTTIME while boot_id is the same, and by the uptime after a reboot.
// It never advances by more time than has certainly passed, so no address comes back too early. Every commit
// updates it, from a reading that was made under the store's lock.
struct StoreHeader {
  std::string boot_id;
  std::uint64_t boottime_ms = 0;
  std::uint64_t store_ms = 0;

  [[nodiscard]] std::uint64_t StoreTime(const ClockReading& now) const;
  // The header of a commit now. Its boot time is never before the previous commit's: otherwise the time
  // between the two would be counted twice. (A time namespace has a CLOCK_BOOTTIME of its own.)
  [[nodiscard]] StoreHeader After(const ClockReading& now) const;
};

// "2026-11-21 17:36:22 UTC", for people.
std::string UtcText(std::int64_t wall_seconds);

std::string Encode(const StoreHeader& header);
std::string Encode(const AddressRecord& allocation);
std::string Encode(const IpAddress& address);

Result<StoreHeader> DecodeHeader(std::string_view bytes);
Result<AddressRecord> DecodeRecord(std::string_view key, std::string_view bytes);
Result<IpAddress> DecodeAddress(std::string_view bytes);

std::string HeaderKey();
std::string StartKey();
std::string PoolKey(std::string_view pool);
std::string RunPrefix(std::string_view pool);
std::string ReuseQueuePrefix(std::string_view pool);
std::string ReuseQueueKey(std::string_view pool, std::uint64_t since_ms, const IpAddress& address);
std::string QuarantinePrefix(std::string_view pool);
std::string QuarantineKey(std::string_view pool, std::uint64_t until_ms, const IpAddress& address);
std::string AddressPrefix(std::string_view pool);
// All pools' addresses.
std::string AllAddressesPrefix();
std::string AddressKey(std::string_view pool, const IpAddress& address);
// kInvalid when the names cannot be a key: empty, too long, or with a NUL.
Result<void> CheckOwner(const AddressOwner& owner, std::string_view pool);
std::string OwnerPrefix(const AddressOwner& owner);
// The prefix of the keys of the owners that are links of this owner's attachment.
std::string LinkOwnersPrefix(const AddressOwner& owner);
std::string AllOwnersPrefix();

struct QueueEntry {
  std::uint64_t at_ms = 0;  // since when it cools down, or until when it is in quarantine
  IpAddress address;
};
// `key` starts with ReuseQueuePrefix(pool) or QuarantinePrefix(pool).
Result<QueueEntry> DecodeQueueKey(std::string_view pool, std::string_view key);

}  // namespace railhead::ipam
