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

#include <vector>

#include "ipam/store/address_record.h"
#include "ipam/store/ledger.h"
#include "ipam/store/store.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AllocationResult {
  std::vector<AddressRecord> records;  // one for each request
  bool changed = false;
};

// After kExhausted `*refused` is the request whose pools have no address.
Result<AllocationResult> AllocateAll(AddressLedger& ledger, const std::vector<AddressRequest>& requests,
                                     const AddressRequest** refused);

}  // namespace railhead::ipam
