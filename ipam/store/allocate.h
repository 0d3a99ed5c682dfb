// How the claims of one Allocate() are met, within its transaction.
//
// A claim is met by what its owner holds, else by the address that it wants, else by one
// that is aligned with the others', else by the next one of the first of its pools that has any.
// Cost: as the ledger's steps; a claim of several pools pays for those before the one
// that gives. Errors: as AddressStore::Allocate(), with the link's name in front; the
// caller aborts the transaction. Threads: none.
#pragma once

#include <vector>

#include "ipam/store/ledger.h"
#include "ipam/store/store.h"

namespace railhead {

struct Holding {
  std::vector<AddressRecord> records;  // one for each claim
  bool changed = false;
};

// After kExhausted `*refused` is the claim whose pools have no address.
Result<Holding> HoldAll(AddressLedger& ledger, const std::vector<OwnerClaim>& claims,
                        const OwnerClaim** refused);

}  // namespace railhead
