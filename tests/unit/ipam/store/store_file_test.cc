// The store's file: its length, which is fixed before the first commit, and what becomes of a cut file.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "ipam/store/lmdb.h"
#include "ipam/store/store.h"
#include "tests/support/ipam/node_history.h"
#include "tests/support/ipam/store_pages.h"
#include "tests/support/ipam/support.h"
#include "tests/support/seed.h"

namespace railhead::ipam {
namespace {

namespace fs = std::filesystem;
using testing::At;
using testing::CountedPages;
using testing::kPageSize;
using testing::MakePool;
using testing::NodeHistory;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::StoreAt;
using testing::StoreBytes;
using testing::StoreEntries;

constexpr std::size_t kLarge = 200;  // pages
constexpr int kCrowd = 12'000;

std::uint64_t Below(std::mt19937_64& random, std::uint64_t limit) {
  return random() % limit;
}

std::uint64_t DiskUse(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

// Stores of nodes with several boots behind them, some with a list of free pages that needs
// overflow pages of its own.
class StoreFile : public ::testing::Test {
 protected:
  void MakeHistory(const ScratchRoot& scratch) {
    NodeHistory node(scratch.root(), random_(), 1 + Below(random_, 8), 12);
    for (std::uint64_t boots = 1 + Below(random_, 3); boots > 0; --boots) {
      const auto done = node.Boot(static_cast<int>(5 + Below(random_, 15)));
      ASSERT_TRUE(done) << Describe(done.error());
    }
  }
  // Thousands of addresses come in one transaction and go in another.
  void MakeCrowd(const ScratchRoot& scratch) {
    auto store = StoreAt::Open(scratch.root());
    ASSERT_TRUE(store) << Describe(store.error());
    const AddressPool pool = MakePool("10.200.0.0/16", {}, 0);
    std::vector<AddressRequest> requests;
    requests.reserve(kCrowd);
    for (int i = 0; i < kCrowd; ++i) requests.push_back({OwnerNumber(i), {pool}, {}, false});
    ASSERT_TRUE(store->Allocate(requests, At(1, "crowd")));
    ASSERT_TRUE(store->ReleaseWhere([](const AddressRecord&) { return true; }, At(2, "crowd")));
    ASSERT_TRUE(store->Allocate(OwnerNumber(0), pool, At(3, "crowd")));
  }

  std::mt19937_64 random_{testing::Seed()};
};

// The class of fault: a healthy store that is refused. At every boot a store may be left with pages
// at its end that were counted and never written.
TEST_F(StoreFile, NoNodeLosesItsStoreOverBootsRailsAndPods) {
  int operations = 0;
  for (int i = 0; i < 24; ++i) {
    const ScratchRoot scratch;
    NodeHistory node(scratch.root(), random_(), 1 + Below(random_, 8), 25 + Below(random_, 25));
    for (int boot = 0; boot < 3; ++boot) {
      const auto done = node.Boot(static_cast<int>(Below(random_, 12)));
      ASSERT_TRUE(done) << "node " << i << ": " << Describe(done.error());
    }
    operations += node.operations();
    EXPECT_EQ(StoreAt::Open(scratch.root())->Verify().value(), std::vector<std::string>{});
    EXPECT_EQ(fs::file_size(scratch.StorePath()), kStoreSize);
    EXPECT_LE(DiskUse(scratch.StorePath()), CountedPages(scratch.StorePath()) * kPageSize) << "it is sparse";
  }
  EXPECT_GT(operations, 2000);
}

// Cut at every page and within it. Either every page that is counted is there, and so all of the content, or
// the file is refused. What is accepted has its length again.
TEST_F(StoreFile, ACutIsHealthyOrRefused) {
  int healthy = 0;
  int refused = 0;
  for (int i = 0; i < 12; ++i) {
    const ScratchRoot scratch;
    if (i == 0) MakeCrowd(scratch);
    if (i > 0) MakeHistory(scratch);
    if (HasFatalFailure()) return;
    const std::size_t counted = CountedPages(scratch.StorePath());
    const std::string whole = StoreBytes(scratch.StorePath());
    const auto content = StoreEntries(scratch.StorePath());
    ASSERT_TRUE(content) << Describe(content.error());
    // All of a small store, and the end of a large one.
    for (std::size_t page = counted > kLarge ? counted - 20 : 0; page < counted + 3; ++page) {
      for (const std::size_t within :
           {std::size_t{0}, std::size_t{1}, 1 + Below(random_, kPageSize - 2), kPageSize - 1}) {
        const std::size_t size = page * kPageSize + within;
        const ScratchRoot other;
        other.Write("/var/lib/railhead/ipam/store.mdb", whole);
        fs::resize_file(other.StorePath(), size);
        const auto read = StoreEntries(other.StorePath());
        ASSERT_EQ(read.has_value(), size >= whole.size())
            << size << " of " << whole.size() << " bytes: " << (read ? "read" : Describe(read.error()));
        ++(read ? healthy : refused);
        if (!read) {
          EXPECT_EQ(read.error().code, ErrorCode::kIo);
          continue;
        }
        ASSERT_TRUE(*read == *content) << size << " of " << whole.size() << " bytes: other content";
        EXPECT_EQ(fs::file_size(other.StorePath()), kStoreSize);
      }
    }
  }
  EXPECT_GT(healthy, 20);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace railhead::ipam
