// How the claims of one Allocate() are met, within its transaction.
//
// A claim is met by what its owner holds, else by the address that it wants, else by one
// that is aligned with the others', else by the next one of the first of its pools that has any.
// Cost: as the ledger's steps; a claim of several pools pays for those before the one
// that gives. Errors: as AddressStore::Allocate(), with the link's name in front; the
// caller aborts the transaction. Threads: none.
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

struct Holding {
  std::vector<AddressRecord> records;  // one for each claim
  bool changed = false;
};

// After kExhausted `*refused` is the claim whose pools have no address.
Result<Holding> HoldAll(AddressLedger& ledger, const std::vector<OwnerClaim>& claims,
                        const OwnerClaim** refused);

// Addresses that nobody can have any more, for the node's reconciler.
//
// What happened to a container without its DEL is not in the store, so the caller
// decides: by the boot (no network namespace survives one) or by the owner. What is
// released rests as after a DEL. No store: nothing is held and none is made.
// Errors: as AddressStore; after an error nothing has changed.
// Threads: none; excludes other processes by the store's lock, so each call is short.

// What is held, links included; AttachmentIfname() of an owner is its CNI_IFNAME.
// A holder of this boot may have died too: whether it lives, only the caller knows.
struct HeldAddresses {
  StoreMoment now;  // when they were listed
  std::vector<AddressRecord> records;
};
Result<HeldAddresses> ListHeld(const Root& root);

// Releases what was handed out before this boot; these, as they were. Whoever asked for an address
// or released one in this boot before has done so already: then there are none.
Result<std::vector<AddressRecord>> ReleaseEarlierBoots(const Root& root);

// Releases what the attachment `owner` (ifname: CNI_IFNAME) and its links hold, as
// DEL does; how many.
Result<std::size_t> ReleaseOwner(const Root& root, const AddressOwner& owner);

// Why an address is not given: the errors of the address store, with who has it, since when, and
// what to do.
// Threads: pure functions, but for reading within the caller's transaction.

struct AddressPool;

std::uint64_t Milliseconds(std::chrono::seconds time);

// kBusy
Error HeldByAnother(const AddressRecord& held);
// kBusy; `resting` may be in quarantine.
Error StillResting(const AddressRecord& resting, std::uint64_t left_ms);
// kExhausted: how many are held, resting, and until when. Walks over what rests.
Result<Error> ExplainExhausted(const LmdbTxn& txn, const AddressPool& pool, std::uint64_t store_ms);

}  // namespace railhead::ipam
