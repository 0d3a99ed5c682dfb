// The MAC of the interface that had the only address of a pool last.
//
//   last device       'M' pool                           -> MAC
//
// The reuse delay keeps an address from another MAC while switches know the one before. Where a node's
// network has one address, as in a /31, the same MAC gets it again at once. Errors: as LmdbTxn; kIo for a
// damaged record. Threads: none; within the caller's transaction.
#pragma once

#include "ipam/store/lmdb.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AddressRequest;
struct AddressPool;

// Whether the request's interface had the address of the pool last, and the pool has no other one.
Result<bool> HadItLast(const LmdbTxn& txn, const AddressPool& pool, const AddressRequest& request);

// Notes that it has an address of the pool, if the pool has no other one.
Result<void> NoteLastDevice(LmdbTxn& txn, const AddressPool& pool, const AddressRequest& request);

}  // namespace railhead::ipam
