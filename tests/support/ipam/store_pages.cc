#include "tests/support/ipam/store_pages.h"

#include <gtest/gtest.h>
#include <lmdb.h>

#include <fstream>
#include <memory>
#include <utility>

namespace railhead::testing {

std::size_t CountedPages(const std::string& path) {
  MDB_env* raw = nullptr;
  EXPECT_EQ(mdb_env_create(&raw), 0);
  const std::unique_ptr<MDB_env, void (*)(MDB_env*)> env(raw, mdb_env_close);
  EXPECT_EQ(mdb_env_open(raw, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_RDONLY, 0600), 0);
  MDB_envinfo info{};
  EXPECT_EQ(mdb_env_info(raw, &info), 0);
  return info.me_last_pgno + 1;
}

std::string StoreBytes(const std::string& path) {
  std::string bytes(CountedPages(path) * kPageSize, '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
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

}  // namespace railhead::testing
