// The errors of the address store: why an address is not allocated, its owner, since when, what to do.
// Threads: pure functions, but for reading within the caller's transaction.
#pragma once

#include <chrono>
#include <cstdint>

#include "ipam/store/address_record.h"
#include "ipam/store/ledger.h"
#include "ipam/store/lmdb.h"
#include "ipam/store/store.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AddressPool;

std::uint64_t Milliseconds(std::chrono::seconds time);

// kBusy
Error HeldByAnother(const AddressRecord& held);
// kBusy; `record` is in its reuse delay or in quarantine.
Error NotYetReusable(const AddressRecord& record, std::uint64_t left_ms);
// kExhausted: how many are held, how many cool down, and until when. Walks over the reuse queue.
Result<Error> ExplainExhausted(const LmdbTxn& txn, const AddressPool& pool, std::uint64_t store_ms);

}  // namespace railhead::ipam
