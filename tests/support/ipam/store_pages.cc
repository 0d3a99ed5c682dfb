#include "tests/support/ipam/store_pages.h"

#include <gtest/gtest.h>
#include <lmdb.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "tests/support/ipam/node_history.h"

namespace railhead::testing {

StorePages PagesOf(const std::string& path) {
  StorePages pages;
  MDB_env* raw = nullptr;
  EXPECT_EQ(mdb_env_create(&raw), 0);
  const std::unique_ptr<MDB_env, void (*)(MDB_env*)> env(raw, mdb_env_close);
  EXPECT_EQ(mdb_env_open(raw, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_RDONLY, 0600), 0);
  MDB_envinfo info{};
  EXPECT_EQ(mdb_env_info(raw, &info), 0);
  pages.counted = info.me_last_pgno + 1;
  for (std::uint64_t page = 0; page < pages.counted; ++page) pages.used.insert(page);
  MDB_txn* txn = nullptr;
  EXPECT_EQ(mdb_txn_begin(raw, nullptr, MDB_RDONLY, &txn), 0);
  MDB_cursor* cursor = nullptr;
  EXPECT_EQ(mdb_cursor_open(txn, 0, &cursor), 0);
  MDB_val key{};
  MDB_val value{};
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
    const auto* list = static_cast<const std::size_t*>(value.mv_data);
    for (std::size_t i = 1; i <= list[0]; ++i) pages.used.erase(list[i]);
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  return pages;
}

Result<std::vector<ipam::KeyValue>> StoreEntries(const std::string& path) {
  const ipam::LmdbEnv env = RH_TRY(ipam::LmdbEnv::Open(path, ipam::LmdbEnv::Mode::kExisting));
  const ipam::LmdbTxn txn = RH_TRY(ipam::LmdbTxn::Begin(env, ipam::LmdbTxn::Mode::kRead));
  std::vector<ipam::KeyValue> entries;
  for (std::string at(1, '\0');; at = entries.back().key + '\0') {
    auto entry = RH_TRY(txn.AtOrAfter(at));
    if (!entry) return entries;
    if (entry->key < at) return Fail(ErrorCode::kIo, "the keys are not in order");
    entries.push_back(std::move(*entry));
  }
}

void MakeShortStore(const Root& root, std::uint64_t seed) {
  constexpr int kTries = 200;
  const std::string store = root.Path("/var/lib/railhead/ipam/store.mdb");
  std::mt19937_64 random(seed);
  for (int i = 0; i < kTries; ++i) {
    std::filesystem::remove_all(root.Path("/var/lib/railhead/ipam"));
    NodeHistory node(root, random(), 1 + random() % 8, 12);
    for (std::uint64_t boots = 1 + random() % 3; boots > 0; --boots) {
      const auto done = node.Boot(static_cast<int>(random() % 12));
      ASSERT_TRUE(done) << Describe(done.error());
    }
    const StorePages pages = PagesOf(store);
    if (pages.needed() == pages.counted) continue;
    std::filesystem::resize_file(store, pages.needed() * kPageSize);
    return;
  }
  FAIL() << "no store has pages behind those in use";
}

}  // namespace railhead::testing
