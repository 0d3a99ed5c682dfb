// The store's file and what is in it, for tests that cut it.
//
// Threads: none. A failure to read a file that is whole fails the test that asked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ipam/store/lmdb.h"
#include "netns/base/result.h"

namespace railhead::testing {

inline constexpr std::size_t kPageSize = 4096;

// How many pages the newest transaction counts. Some of the last ones may never have been written.
std::size_t CountedPages(const std::string& path);

// Those pages. Behind them the file, of 256 MiB, is a hole.
std::string StoreBytes(const std::string& path);

// All entries of the store, by key.
Result<std::vector<ipam::KeyValue>> StoreEntries(const std::string& path);

}  // namespace railhead::testing
