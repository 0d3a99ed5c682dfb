// What every IndexStore has to do: one suite for the Kubernetes API, and for the store in memory that the
// tests of claims use.
#include "deviceplugin/services/node_index/index_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/services/node_index/kube_index_store.h"
#include "tests/support/kubernetes/kube_servers.h"
#include "tests/unit/deviceplugin/services/node_index/memory_index_store.h"

namespace railhead::testing {
namespace {

using node_index::ClaimEntry;
using node_index::Encode;
using node_index::IndexStore;

// A service that is shared by all clients that it makes, empty at first.
class StoreService {
 public:
  StoreService() = default;
  StoreService(const StoreService&) = delete;
  StoreService& operator=(const StoreService&) = delete;
  virtual ~StoreService() = default;
  virtual std::unique_ptr<IndexStore> Client() = 0;
};

class KubeStoreService : public StoreService {
 public:
  explicit KubeStoreService(KubeServer::Kind kind) : server_(SharedKubeServer(kind)) { server_.Clear(); }
  std::unique_ptr<IndexStore> Client() override {
    return node_index::MakeKubeIndexStore(server_.Access(), std::chrono::seconds(60));
  }

 private:
  KubeServer& server_;
};

class MemoryService : public StoreService {
 public:
  std::unique_ptr<IndexStore> Client() override { return std::make_unique<MemoryIndexStore>(cluster_); }

 private:
  IndexCluster cluster_;
};

struct StoreMaker {
  std::string name;
  bool is_service = false;  // of many clients at once
  std::function<std::unique_ptr<StoreService>()> make;
};

void PrintTo(const StoreMaker& maker, std::ostream* out) {
  *out << maker.name;
}

std::vector<StoreMaker> Services() {
  std::vector<StoreMaker> makers;
  for (const KubeServer::Kind kind : KubeServerKinds()) {
    makers.push_back(
        {NameOfKubeServer(kind), true, [kind] { return std::make_unique<KubeStoreService>(kind); }});
  }
  return makers;
}

std::vector<StoreMaker> Stores() {
  std::vector<StoreMaker> makers = Services();
  makers.push_back({"Memory", false, [] { return std::make_unique<MemoryService>(); }});
  return makers;
}

using Indices = std::vector<std::uint64_t>;

class IndexStoreTest : public ::testing::TestWithParam<StoreMaker> {
 protected:
  static std::string Of(const std::string& node) { return Encode({node, "uid-of-" + node, ""}); }
  ClaimEntry Made(std::uint64_t index, const std::string& node = "a") {
    auto made = store_->Create(index, Of(node));
    if (!made) throw std::runtime_error(Describe(made.error()));
    return *made;
  }
  Indices Listed(const std::optional<std::uint64_t>& after, std::size_t limit) {
    const auto claims = store_->Claims(after, limit);
    if (!claims) throw std::runtime_error(Describe(claims.error()));
    Indices indices;
    for (const ClaimEntry& entry : *claims) indices.push_back(entry.index);
    return indices;
  }
  template <typename T>
  static void ExpectConflict(const Result<T>& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kConflict) << Describe(result.error());
  }

  std::unique_ptr<StoreService> service_ = GetParam().make();
  std::unique_ptr<IndexStore> store_ = service_->Client();
  std::unique_ptr<IndexStore> other_ = service_->Client();
};

class IndexServiceTest : public IndexStoreTest {};

TEST_P(IndexStoreTest, WhatIsNotThereIsNoError) {
  const auto got = store_->Get(7);
  ASSERT_TRUE(got) << Describe(got.error());
  EXPECT_EQ(*got, std::nullopt);
  EXPECT_EQ(Listed(std::nullopt, 10), Indices{});
}

TEST_P(IndexStoreTest, OthersSeeWhatWasCreated) {
  for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{7}, node_index::kLastIndex}) {
    const ClaimEntry made = Made(index, "node0.example");
    EXPECT_EQ(made.index, index);
    EXPECT_EQ(made.value, Of("node0.example"));
    EXPECT_FALSE(made.revision.empty());
    const auto got = other_->Get(index);
    ASSERT_TRUE(got) << Describe(got.error());
    EXPECT_EQ(*got, made);
  }
}

TEST_P(IndexStoreTest, OnlyOneCreateOfAnIndexSucceeds) {
  const ClaimEntry made = Made(7);
  ExpectConflict(other_->Create(7, Of("b")));
  EXPECT_EQ(*store_->Get(7), made);
}

TEST_P(IndexStoreTest, OnlyTheLatestStateIsReplaced) {
  const ClaimEntry first = Made(7);
  const auto second = other_->Update(first, Of("b"));
  ASSERT_TRUE(second) << Describe(second.error());
  EXPECT_EQ(second->index, first.index);
  EXPECT_NE(second->revision, first.revision);
  ExpectConflict(store_->Update(first, Of("c")));
  ExpectConflict(store_->Remove(first));
  EXPECT_EQ(*store_->Get(7), *second);
  ASSERT_TRUE(store_->Remove(*second));
  EXPECT_EQ(*other_->Get(7), std::nullopt);
}

// A neighbor's mark that was taken back is not the claim from before the mark.
TEST_P(IndexStoreTest, TheSameContentIsAChange) {
  const ClaimEntry first = Made(7);
  const auto marked = store_->Update(first, Encode({"a", "uid-of-a", "b"}));
  ASSERT_TRUE(marked) << Describe(marked.error());
  const auto again = other_->Update(*marked, Of("a"));
  ASSERT_TRUE(again) << Describe(again.error());
  EXPECT_EQ(again->value, first.value);
  EXPECT_NE(again->revision, first.revision);
  ExpectConflict(store_->Update(first, Of("c")));
}

TEST_P(IndexStoreTest, WhatIsGoneIsAConflict) {
  const ClaimEntry gone = Made(3);
  ASSERT_TRUE(other_->Remove(gone));
  ExpectConflict(store_->Update(gone, Of("b")));
  ExpectConflict(store_->Remove(gone));
}

TEST_P(IndexStoreTest, AnotherClaimOfTheIndexIsNotTheOneSeen) {
  const ClaimEntry first = Made(3);
  ASSERT_TRUE(other_->Remove(first));
  const auto second = other_->Create(3, first.value);
  ASSERT_TRUE(second) << Describe(second.error());
  ExpectConflict(store_->Update(first, Of("b")));
  ExpectConflict(store_->Remove(first));
  EXPECT_EQ(*store_->Get(3), *second);
}

TEST_P(IndexStoreTest, ClaimsAreListedByTheirNames) {
  for (const std::uint64_t index : {2, 10, 1, 0, 65535, 100}) Made(index);
  EXPECT_EQ(Listed(std::nullopt, 3), (Indices{0, 1, 10}));
  EXPECT_EQ(Listed(10, 3), (Indices{100, 2, 65535}));
  EXPECT_EQ(Listed(3, 3), Indices{65535}) << "after a name that is not there";
  EXPECT_EQ(Listed(65535, 3), Indices{});
  EXPECT_EQ(Listed(std::nullopt, 0), Indices{});
  const auto claims = store_->Claims(1, 1);
  ASSERT_TRUE(claims) << Describe(claims.error());
  EXPECT_EQ(claims->at(0), **store_->Get(10));
}

TEST_P(IndexStoreTest, LongLists) {
  for (std::uint64_t index = 0; index < 300; ++index) Made(index);
  EXPECT_EQ(Listed(std::nullopt, IndexStore::kMostClaims).size(), 300U);
  EXPECT_EQ(Listed(std::nullopt, 299).size(), 299U);
}

TEST_P(IndexServiceTest, OfManyAtOnceOneWins) {
  constexpr std::size_t kThreads = 8;
  constexpr std::uint64_t kRounds = 10;
  std::vector<std::vector<std::uint64_t>> won(kThreads);
  std::vector<std::unique_ptr<IndexStore>> clients;
  for (std::size_t i = 0; i < kThreads; ++i) clients.push_back(service_->Client());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        if (clients[i]->Create(round, Of(std::to_string(i)))) won[i].push_back(round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::multiset<std::uint64_t> rounds;
  for (std::size_t i = 0; i < kThreads; ++i) {
    for (const std::uint64_t round : won[i]) {
      rounds.insert(round);
      const auto entry = store_->Get(round);
      ASSERT_TRUE(entry && *entry);
      EXPECT_EQ((*entry)->value, Of(std::to_string(i)));
    }
  }
  EXPECT_EQ(rounds.size(), kRounds);
  EXPECT_EQ(std::set(rounds.begin(), rounds.end()).size(), kRounds);
}

INSTANTIATE_TEST_SUITE_P(Of, IndexStoreTest, ::testing::ValuesIn(Stores()),
                         [](const auto& named) { return named.param.name; });
INSTANTIATE_TEST_SUITE_P(Of, IndexServiceTest, ::testing::ValuesIn(Services()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace railhead::testing
