// One Allocate(), within its transaction.
//
// A request gets the first of these that exists:
//   The address that its owner holds.
//   The fixed address that it names.
//   An address that is aligned with those of the other requests.
//   The next address of its first pool that has any.
//
// Cost: as the ledger's steps. A request of several pools pays for each pool that is tried.
// Errors: as AddressStore::Allocate(), with the link's name in front; the caller aborts the transaction.
// Threads: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipam/store/address_record.h"
#include "ipam/store/ledger.h"
#include "ipam/store/lmdb.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AllocationResult {
  std::vector<AddressRecord> records;  // one for each request
  bool changed = false;
};

// After kExhausted `*refused` is the request whose pools have no address.
Result<AllocationResult> AllocateAll(AddressLedger& ledger, const std::vector<AddressRequest>& requests,
                                     const AddressRequest** refused);

// Addresses whose container is gone, for the node's reconciler.
//
// The store does not know of a container that went without its DEL. So the caller decides: by the boot (no
// network namespace survives a reboot) or by the owner (AddressStore::Release). The reuse delay begins as
// after a DEL.
// No store: nothing is held and none is made.
// Errors: as AddressStore; after an error nothing has changed.
// Threads: none; excludes other processes by the store's lock, so each call is short.

// All held addresses, those of links included; AttachmentIfname() of an owner is its CNI_IFNAME.
// A holder of this boot may be dead, too: only the caller knows.
struct HeldAddresses {
  StoreMoment now;  // when they were listed
  std::vector<AddressRecord> records;
};
Result<HeldAddresses> ListHeld(const Root& root);

// Releases the addresses of earlier boots; returns their earlier records. The first allocation or release
// of this boot does the same: then none is left.
Result<std::vector<AddressRecord>> ReleaseEarlierBoots(const Root& root);

// The errors of the address store: why an address is not allocated, its owner, since when, what to do.
// Threads: pure functions, but for reading within the caller's transaction.

struct AddressPool;

std::uint64_t Milliseconds(std::chrono::seconds time);

// kBusy
Error HeldByAnother(const AddressRecord& held);
// kBusy; `record` is in its reuse delay or in quarantine.
Error NotYetReusable(const AddressRecord& record, std::uint64_t left_ms);
// kExhausted: how many are held, how many cool down, and until when. Walks over the reuse queue.
Result<Error> ExplainExhausted(const LmdbTxn& txn, const AddressPool& pool, std::uint64_t store_ms);

}  // namespace railhead::ipam
