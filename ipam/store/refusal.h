// Why an address is not given: the errors of the address store, with who has it, since when, and
// what to do.
// Threads: pure functions, but for reading within the caller's transaction.
#pragma once

#include <chrono>
#include <cstdint>

#include "ipam/store/address_record.h"
#include "ipam/store/lmdb.h"
#include "netns/base/result.h"

namespace railhead {

struct AddressPool;

std::uint64_t Milliseconds(std::chrono::seconds time);

// kBusy
Error HeldByAnother(const AddressRecord& held);
// kBusy; `resting` may be in quarantine.
Error StillResting(const AddressRecord& resting, std::uint64_t left_ms);
// kExhausted: how many are held, resting, and until when. Walks over what rests.
Result<Error> ExplainExhausted(const LmdbTxn& txn, const AddressPool& pool, std::uint64_t store_ms);

}  // namespace railhead
