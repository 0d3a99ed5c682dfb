// The store's file: shorter than LMDB counts without damage, cut off, and damaged.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ipam/store/lmdb.h"
#include "ipam/store/store.h"
#include "netns/base/unique_fd.h"
#include "tests/support/ipam/node_history.h"
#include "tests/support/ipam/store_pages.h"
#include "tests/support/ipam/support.h"
#include "tests/support/seed.h"

namespace railhead::ipam {
namespace {

namespace fs = std::filesystem;
using testing::At;
using testing::kPageSize;
using testing::MakePool;
using testing::MakeShortStore;
using testing::NodeHistory;
using testing::OwnerNumber;
using testing::PagesOf;
using testing::ScratchRoot;
using testing::StoreAt;
using testing::StoreEntries;
using testing::StorePages;

constexpr std::size_t kLarge = 200;  // pages
constexpr int kCrowd = 12'000;

std::uint64_t Below(std::mt19937_64& random, std::uint64_t limit) {
  return random() % limit;
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
  [[nodiscard]] int get() const { return fd_.get(); }
  void Write(std::uint64_t at, const std::string& bytes) const {
    EXPECT_EQ(::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  UniqueFd fd_;
};

// Of struct MDB_page: the number, a pad, the flags, the bounds, the places of the nodes.
constexpr std::size_t kKindAt = 10;
constexpr std::size_t kBoundsAt = 12;
constexpr std::size_t kNodesAt = 16;
enum Kind : std::uint8_t { kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8 };

bool IsHeaded(const std::string& page, std::uint64_t number) {
  std::uint64_t said = 0;
  std::memcpy(&said, page.data(), sizeof(said));
  return said == number;
}

int KindOf(const std::string& page) {
  return static_cast<unsigned char>(page[kKindAt]);
}

std::vector<std::string> DamagesOf(const std::string& page) {
  std::vector<std::string> damages{std::string(kPageSize, '\0'), std::string(kPageSize, '\xff')};
  const auto with = [&](std::size_t at, std::uint16_t value) {
    std::string damaged = page;
    std::memcpy(damaged.data() + at, &value, sizeof(value));
    damages.push_back(std::move(damaged));
  };
  const int kind = KindOf(page);
  with(0, 0x7ffe);
  with(kKindAt, kind == kMeta ? kLeaf : kMeta);
  if (kind == kBranch || kind == kLeaf) {
    with(kBoundsAt, kNodesAt);
    with(kBoundsAt, kPageSize - 2);
    with(kBoundsAt + 2, kPageSize + 1);
    with(kNodesAt, kNodesAt / 2);
    with(kNodesAt, kPageSize - 4);
  }
  return damages;
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
    // Nothing was walked: each commit left the file as long as it counts.
    EXPECT_EQ(StoreAt::Open(scratch.root())->OwnCounters().value(), StoreCounters{}) << "node " << i;
    EXPECT_EQ(fs::file_size(scratch.StorePath()), PagesOf(scratch.StorePath()).counted * kPageSize);
  }
  EXPECT_GT(operations, 2000);
}

// Cut at every page and within it: either all of the content is there, or it is refused. Which of
// the two, LMDB's own list of free pages says.
TEST_F(StoreFile, ACutIsHealthyOrRefused) {
  int healthy = 0;
  int refused = 0;
  for (int i = 0; i < 12; ++i) {
    const ScratchRoot scratch;
    if (i == 0) MakeCrowd(scratch);
    if (i > 0) MakeHistory(scratch);
    if (HasFatalFailure()) return;
    const StorePages pages = PagesOf(scratch.StorePath());
    const std::string whole = ReadBytes(scratch.StorePath());
    ASSERT_EQ(whole.size(), pages.counted * kPageSize);
    const auto content = StoreEntries(scratch.StorePath());
    ASSERT_TRUE(content) << Describe(content.error());
    // All of a small store, and of a large one those around its last page in use.
    const bool large = pages.counted > kLarge;
    const std::size_t first = large ? pages.needed() - 20 : 0;
    const std::size_t end = large ? std::min(pages.counted, pages.needed() + 20) : pages.counted;
    for (std::size_t page = first; page < end; ++page) {
      for (const std::size_t within :
           {std::size_t{0}, std::size_t{1}, 1 + Below(random_, kPageSize - 2), kPageSize - 1}) {
        const std::size_t size = page * kPageSize + within;
        const ScratchRoot other;
        other.Write("/var/lib/railhead/ipam/store.mdb", whole.substr(0, size));
        const auto read = StoreEntries(other.StorePath());
        const bool has_all = size >= pages.needed() * kPageSize;
        ASSERT_EQ(read.has_value(), has_all)
            << size << " of " << whole.size() << " bytes, " << pages.needed()
            << " pages are needed: " << (read ? "read" : Describe(read.error()));
        ++(has_all ? healthy : refused);
        if (!read) {
          EXPECT_EQ(read.error().code, ErrorCode::kIo);
          continue;
        }
        ASSERT_TRUE(*read == *content) << size << " of " << whole.size() << " bytes: other content";
      }
    }
  }
  EXPECT_GT(healthy, 20);
  EXPECT_GT(refused, 300);
}

// Each page in use loses its number, its kind, its bounds, its nodes or its whole content.
TEST_F(StoreFile, AWalkFindsEveryDamagedPage) {
  std::map<int, int> tried;  // by kind of page
  for (int i = 0; i < 6; ++i) {
    const ScratchRoot scratch;
    if (i == 0) MakeCrowd(scratch);
    if (i > 0) MakeHistory(scratch);
    if (HasFatalFailure()) return;
    const std::string whole = ReadBytes(scratch.StorePath());
    const OpenFile file(scratch.StorePath());
    ASSERT_TRUE(WalkLmdbFile(file.get()));
    for (const std::uint64_t page : PagesOf(scratch.StorePath()).used) {
      const std::string before = whole.substr(page * kPageSize, kPageSize);
      // The later pages of an overflow value have no header.
      if (page > 1 && !IsHeaded(before, page)) continue;
      const int kind = KindOf(before);
      if (i == 0 && kind == kLeaf && Below(random_, 20) != 0) continue;
      for (const std::string& after : DamagesOf(before)) {
        file.Write(page * kPageSize, after);
        EXPECT_FALSE(WalkLmdbFile(file.get())) << "page " << page << " of kind " << kind;
      }
      ++tried[kind];
      file.Write(page * kPageSize, before);
    }
    EXPECT_TRUE(WalkLmdbFile(file.get()));
  }
  EXPECT_EQ(tried[kMeta], 12);
  EXPECT_GT(tried[kBranch], 5);
  EXPECT_GT(tried[kLeaf], 50);
  EXPECT_GT(tried[kOverflow], 0);
}

// If the walk accepts a file, LMDB can read it to its end without reading beyond it. A damaged page number
// would cause a SIGBUS.
TEST_F(StoreFile, WhatAWalkAcceptsCanBeRead) {
  const ScratchRoot scratch;
  MakeHistory(scratch);
  ASSERT_FALSE(HasFatalFailure());
  const std::string whole = ReadBytes(scratch.StorePath());
  const StorePages pages = PagesOf(scratch.StorePath());
  const std::vector<std::uint64_t> used(pages.used.begin(), pages.used.end());
  int read_whole = 0;
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole.substr(0, pages.needed() * kPageSize);
    const std::uint64_t page = used[Below(random_, used.size())];
    // The part of a page that describes its content. The rest is keys and values.
    const std::uint64_t described = page < 2 ? 152 : 80;
    const std::uint64_t at = Below(random_, 4) == 0 ? Below(random_, kPageSize) : Below(random_, described);
    bytes[page * kPageSize + at] = static_cast<char>(random_());
    scratch.Write("/damaged", bytes);
    if (!WalkLmdbFile(OpenFile(scratch.path() + "/damaged").get())) {
      ++refused;
      continue;
    }
    // An error counts as an answer, but most answers must be content.
    const auto read = StoreEntries(scratch.path() + "/damaged");
    if (read) ++read_whole;
  }
  EXPECT_GT(read_whole, 200);
  EXPECT_GT(refused, 200);
}

// The store of an older version's node, or of a node that lost power between a commit and the extension.
TEST_F(StoreFile, AShortStoreIsExtendedOnceAndReported) {
  for (int i = 0; i < 5; ++i) {
    const ScratchRoot scratch;
    MakeShortStore(scratch.root(), random_());
    if (HasFatalFailure()) return;
    const std::uint64_t size = fs::file_size(scratch.StorePath());
    const StorePages pages = PagesOf(scratch.StorePath());
    const auto before = StoreEntries(scratch.StorePath());
    ASSERT_TRUE(before) << Describe(before.error());
    EXPECT_EQ(fs::file_size(scratch.StorePath()), size) << "reading alone extends nothing";
    for (int pod = 0; pod < 20; ++pod) {
      auto store = StoreAt::Open(scratch.root());
      ASSERT_TRUE(store) << Describe(store.error());
      const auto events = store->Events(0).value();
      const auto extended = std::find_if(events.begin(), events.end(), [](const AddressEvent& event) {
        return event.kind == AddressEventKind::kExtended;
      });
      ASSERT_NE(extended, events.end());
      EXPECT_EQ(extended->count, pages.counted - pages.needed());
      EXPECT_EQ(store->OwnCounters().value(), StoreCounters{.extended = 1}) << "walked again";
      EXPECT_EQ(store->Verify().value(), std::vector<std::string>{});
      ASSERT_TRUE(store->Allocate(OwnerNumber(pod), MakePool("10.99.0.0/20", {}, 60), At(pod, "later")));
      EXPECT_EQ(fs::file_size(scratch.StorePath()), PagesOf(scratch.StorePath()).counted * kPageSize);
    }
  }
}

}  // namespace
}  // namespace railhead::ipam
