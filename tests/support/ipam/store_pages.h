// The pages of a store's file, and what is in them, for tests that cut and damage it.
//
// Threads: none. A failure to read a file that is whole fails the test that asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ipam/store/lmdb.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::testing {

inline constexpr std::size_t kPageSize = 4096;

// LMDB's own view of a whole file: the number of pages, and which of them are in use. Its database 0 lists
// the free pages (mdb_stat.c reads it so).
struct StorePages {
  std::size_t counted = 0;
  std::set<std::uint64_t> used;

  // The pages up to the last one in use: a file needs at least these.
  [[nodiscard]] std::size_t needed() const { return static_cast<std::size_t>(*used.rbegin()) + 1; }
};
StorePages PagesOf(const std::string& path);

// All entries of the store, by key.
Result<std::vector<ipam::KeyValue>> StoreEntries(const std::string& path);

// Makes stores of nodes below `root` until one has unused pages at its end, and cuts these off.
void MakeShortStore(const Root& root, std::uint64_t seed);

}  // namespace railhead::testing
