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

// What LMDB itself says of a file that is whole: how many pages it counts, and which of them are in
// use. Its database 0 is the list of the free ones (mdb_stat.c reads it so).
struct StorePages {
  std::size_t counted = 0;
  std::set<std::uint64_t> used;

  // Up to the last page that is in use: what a file needs at least.
  [[nodiscard]] std::size_t needed() const { return static_cast<std::size_t>(*used.rbegin()) + 1; }
};
StorePages PagesOf(const std::string& path);

// All that the store keeps, by key.
Result<std::vector<ipam::KeyValue>> StoreEntries(const std::string& path);

// Makes stores of nodes below `root` until one has pages behind those in use, and cuts these off.
void MakeShortStore(const Root& root, std::uint64_t seed);

}  // namespace railhead::testing
