// The part of a rail's subnet that this node gives addresses of by its fabric, as its store knows it.
//
//   part              'N' rail                           -> PartRecord
//
// The part changes with the node's index, and with subnet, nodeBlock, nodeRanges, gateway and exclusions of
// the rail. An address that a change has added may have been another node's until then. So it is given once
// the fabric's reuse delay has passed since the store has seen the change: railheadd and each ADD note the
// parts in it. Addresses that were in the part before are given meanwhile. The first part that a store sees
// is given at once. Errors: as LmdbTxn; kIo for a damaged record; KeepToSettled(): kBusy while no address of
// the part may be given. Threads: none; within the caller's transaction.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipam/store/lmdb.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AddressPool;
struct RailPart;

// Both lists are sorted and disjoint.
struct PartRecord {
  std::vector<IpRange> ranges;   // of the part
  std::vector<IpRange> settled;  // those that may be given
  std::uint64_t since_ms = 0;    // store time of the latest change

  bool operator==(const PartRecord&) const = default;
};

// The record at `store_ms`, where the part is `ranges` now.
PartRecord Advance(const std::optional<PartRecord>& before, const std::vector<IpRange>& ranges,
                   std::uint64_t store_ms, std::chrono::milliseconds reuse_delay);

// Whether the part has changed the record.
Result<bool> NotePart(LmdbTxn& txn, const RailPart& part, std::uint64_t store_ms);

// Takes the addresses out of the pool that may not be given yet.
Result<void> KeepToSettled(const LmdbTxn& txn, AddressPool* pool, std::uint64_t store_ms);

}  // namespace railhead::ipam
