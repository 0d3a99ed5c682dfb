// What versions that leased blocks of addresses have kept in a node's store, under keys 'B' pool NUL number.
//
// This version reads nothing of it but the pools' names, and writes none. While pods have addresses of such a
// block, another node may get the same ones as its own part of the subnet.
// Threads and errors: as AddressStore.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "netns/base/result.h"

namespace railhead::ipam {

// The pools with such records of which an address is held, or was released less than `reuse_delay` ago.
Result<std::vector<std::string>> FormerBlocksInUse(AddressStore& store, std::chrono::seconds reuse_delay);

}  // namespace railhead::ipam
