// What every ClusterStore has to do: one suite for all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/services/address_leasing/etcd_store.h"
#include "deviceplugin/services/address_leasing/kube_store.h"
#include "ipam/lease/cluster_store.h"
#include "tests/support/cluster_store/certificates.h"
#include "tests/support/cluster_store/etcd_cluster.h"
#include "tests/support/cluster_store/kube_server.h"
#include "tests/support/lease/memory_store.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

// A service that is shared by all clients that it makes, empty at first.
class StoreService {
 public:
  StoreService() = default;
  StoreService(const StoreService&) = delete;
  StoreService& operator=(const StoreService&) = delete;
  virtual ~StoreService() = default;
  virtual std::unique_ptr<ipam::ClusterStore> Client() = 0;
};

struct StoreMaker {
  std::string name;
  bool is_service = false;  // a store of many clients at once, which has to check names
  std::function<std::unique_ptr<StoreService>()> make;
};

void PrintTo(const StoreMaker& maker, std::ostream* out) {
  *out << maker.name;
}

// etcd is started once for all tests; each has a prefix of its own.
class EtcdService : public StoreService {
 public:
  EtcdService() : prefix_("/railhead/test" + std::to_string(++Shared().tests)) {}

  std::unique_ptr<ipam::ClusterStore> Client() override {
    address_leasing::EtcdConfig config = Shared().cluster.Config();
    config.prefix = prefix_;
    config.timeout = std::chrono::seconds(60);
    return MakeEtcdStore(Root(), config);
  }

 private:
  struct Etcd {
    TempRoot files;
    Certificates certificates;
    EtcdCluster cluster{files.directory(), {1, true, true, certificates.directory(), {}, {}}};
    int tests = 0;
  };
  static Etcd& Shared() {
    static Etcd etcd;
    return etcd;
  }
  const std::string prefix_;
};

// The API server is started once, too, and cleared for each test.
template <KubeServer::Kind kind>
class KubeService : public StoreService {
 public:
  KubeService() { Shared().Clear(); }
  std::unique_ptr<ipam::ClusterStore> Client() override {
    return address_leasing::MakeKubeStore(Shared().Access(), std::chrono::seconds(60));
  }

 private:
  static KubeServer& Shared() {
    static KubeServer server(kind);
    return server;
  }
};

// The one that leasing's own tests use: for one thread, and it takes any name.
class MemoryService : public StoreService {
 public:
  std::unique_ptr<ipam::ClusterStore> Client() override { return std::make_unique<MemoryStore>(cluster_); }

 private:
  MemoryCluster cluster_;
};

std::vector<StoreMaker> StoresUnderTest() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  using StandIn = KubeService<KubeServer::Kind::kStandIn>;
  using Real = KubeService<KubeServer::Kind::kReal>;
  std::vector<StoreMaker> makers = {{"Memory", false, [] { return std::make_unique<MemoryService>(); }},
                                    {"Etcd", true, [] { return std::make_unique<EtcdService>(); }},
                                    {"KubeStandIn", true, [] { return std::make_unique<StandIn>(); }}};
  if (!KubeServer::RealServer().empty()) {
    makers.push_back({"KubeApiServer", true, [] { return std::make_unique<Real>(); }});
  }
  return makers;
}

constexpr const char* kPool = "10.100.0.0/16";

class ContractTest : public ::testing::TestWithParam<StoreMaker> {
 protected:
  std::unique_ptr<StoreService> service_ = GetParam().make();
  std::unique_ptr<ipam::ClusterStore> store_ = service_->Client();
  std::unique_ptr<ipam::ClusterStore> other_ = service_->Client();

  ipam::LeaseEntry Made(const ipam::LeaseKey& key, const std::string& value = R"({"node":"a"})") {
    auto made = store_->Create(key, value);
    if (!made) throw std::runtime_error(Describe(made.error()));
    return *made;
  }
  static std::vector<std::uint64_t> Indices(const Result<std::vector<ipam::LeaseEntry>>& entries) {
    if (!entries) throw std::runtime_error(Describe(entries.error()));
    std::vector<std::uint64_t> indices;
    for (const ipam::LeaseEntry& entry : *entries) indices.push_back(entry.key.index);
    return indices;
  }
  static std::vector<std::string> Names(const Result<std::vector<ipam::LeaseEntry>>& entries) {
    if (!entries) throw std::runtime_error(Describe(entries.error()));
    std::vector<std::string> names;
    for (const ipam::LeaseEntry& entry : *entries) names.push_back(entry.key.node);
    return names;
  }
};

class ServiceTest : public ContractTest {};

std::vector<StoreMaker> Services() {
  std::vector<StoreMaker> makers = StoresUnderTest();
  std::erase_if(makers, [](const StoreMaker& maker) { return !maker.is_service; });
  return makers;
}

using Indexes = std::vector<std::uint64_t>;
using NodeNames = std::vector<std::string>;

TEST_P(ContractTest, WhatIsNotThereIsNoError) {
  for (const ipam::LeaseKey& key : {ipam::LeaseKey::Block(kPool, 7), ipam::LeaseKey::Node("node0")}) {
    auto got = store_->Get(key);
    ASSERT_TRUE(got) << Describe(got.error());
    EXPECT_EQ(*got, std::nullopt);
  }
  EXPECT_EQ(Indices(store_->Blocks(kPool, 0, 10)), Indexes{});
  EXPECT_EQ(Names(store_->Nodes("", 10)), NodeNames{});
}

TEST_P(ContractTest, OthersSeeWhatWasCreated) {
  for (const ipam::LeaseKey& key : {ipam::LeaseKey::Block(kPool, 7), ipam::LeaseKey::Block("fd00:1::/64", 1),
                                    ipam::LeaseKey::Node("node0.example")}) {
    const ipam::LeaseEntry made = Made(key, R"({"a":[1,true,"x"],"n":9007199254740993,"s":"\"ä\\"})");
    EXPECT_EQ(made.key, key);
    EXPECT_FALSE(made.revision.empty());
    auto got = other_->Get(key);
    ASSERT_TRUE(got) << Describe(got.error());
    ASSERT_TRUE(got->has_value());
    EXPECT_EQ(**got, made);
  }
}

TEST_P(ContractTest, OnlyOneCreateOfANameSucceeds) {
  const ipam::LeaseKey key = ipam::LeaseKey::Block(kPool, 7);
  const ipam::LeaseEntry made = Made(key, R"({"node":"a"})");
  auto second = other_->Create(key, R"({"node":"b"})");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict) << Describe(second.error());
  EXPECT_EQ(**store_->Get(key), made);
}

TEST_P(ContractTest, OnlyTheLatestStateIsReplaced) {
  const ipam::LeaseEntry first = Made(ipam::LeaseKey::Node("node0"), R"({"n":1})");
  auto second = other_->Update(first, R"({"n":2})");
  ASSERT_TRUE(second) << Describe(second.error());
  EXPECT_EQ(second->key, first.key);
  EXPECT_NE(second->revision, first.revision);
  auto stale = store_->Update(first, R"({"n":3})");
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::kConflict) << Describe(stale.error());
  auto remove = store_->Remove(first);
  ASSERT_FALSE(remove);
  EXPECT_EQ(remove.error().code, ErrorCode::kConflict) << Describe(remove.error());
  EXPECT_EQ(**store_->Get(first.key), *second);
  ASSERT_TRUE(store_->Remove(*second));
  EXPECT_EQ(*other_->Get(first.key), std::nullopt);
}

TEST_P(ContractTest, TheSameContentIsAChange) {
  // A heartbeat with the same content as before still has to be one's own.
  const ipam::LeaseEntry first = Made(ipam::LeaseKey::Node("node0"), R"({"n":1})");
  auto second = store_->Update(first, R"({"n":2})");
  ASSERT_TRUE(second);
  auto third = store_->Update(*second, R"({"n":1})");
  ASSERT_TRUE(third);
  EXPECT_NE(third->revision, first.revision);
  auto stale = other_->Update(first, R"({"n":4})");
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::kConflict);
}

TEST_P(ContractTest, WhatIsGoneIsAConflict) {
  const ipam::LeaseEntry gone = Made(ipam::LeaseKey::Block(kPool, 3));
  ASSERT_TRUE(other_->Remove(gone));
  auto update = store_->Update(gone, "{}");
  ASSERT_FALSE(update);
  EXPECT_EQ(update.error().code, ErrorCode::kConflict) << Describe(update.error());
  auto remove = store_->Remove(gone);
  ASSERT_FALSE(remove);
  EXPECT_EQ(remove.error().code, ErrorCode::kConflict) << Describe(remove.error());
}

TEST_P(ContractTest, AnotherRecordOfTheNameIsNotTheOneSeen) {
  const ipam::LeaseEntry first = Made(ipam::LeaseKey::Block(kPool, 3));
  ASSERT_TRUE(other_->Remove(first));
  auto second = other_->Create(first.key, first.value);
  ASSERT_TRUE(second) << Describe(second.error());
  auto update = store_->Update(first, "{}");
  ASSERT_FALSE(update);
  EXPECT_EQ(update.error().code, ErrorCode::kConflict) << Describe(update.error());
  auto remove = store_->Remove(first);
  ASSERT_FALSE(remove);
  EXPECT_EQ(remove.error().code, ErrorCode::kConflict) << Describe(remove.error());
  EXPECT_EQ(**store_->Get(first.key), *second);
}

TEST_P(ContractTest, BlocksComeInTheOrderOfNumbers) {
  for (const std::uint64_t index : {300, 2, 10, 255, 256, 9, 65535})
    Made(ipam::LeaseKey::Block(kPool, index));
  Made(ipam::LeaseKey::Block("10.100.0.0/17", 4));
  Made(ipam::LeaseKey::Block("10.101.0.0/16", 4));
  Made(ipam::LeaseKey::Node("node0"));
  EXPECT_EQ(Indices(store_->Blocks(kPool, 0, 100)), (Indexes{2, 9, 10, 255, 256, 300, 65535}));
  EXPECT_EQ(Indices(store_->Blocks(kPool, 9, 100)), (Indexes{9, 10, 255, 256, 300, 65535}));
  EXPECT_EQ(Indices(store_->Blocks(kPool, 10, 3)), (Indexes{10, 255, 256}));
  EXPECT_EQ(Indices(store_->Blocks(kPool, 256, 2)), (Indexes{256, 300}));
  EXPECT_EQ(Indices(store_->Blocks(kPool, 301, 2)), (Indexes{65535}));
  EXPECT_EQ(Indices(store_->Blocks(kPool, 65535, 2)), (Indexes{65535}));
  EXPECT_EQ(Indices(store_->Blocks(kPool, 65536, 2)), Indexes{});
  EXPECT_EQ(Indices(store_->Blocks(kPool, 0, 0)), Indexes{});
  const auto listed = store_->Blocks(kPool, 300, 1);
  EXPECT_EQ(listed->at(0), **store_->Get(ipam::LeaseKey::Block(kPool, 300)));
}

TEST_P(ContractTest, BlocksOfLargePools) {
  const std::string pool = "fd00:2::/64";
  const Indexes far = {0, 255, 256, 65536, 16777216, 4294967296, 1ULL << 56U, (1ULL << 60U) + 5};
  for (const std::uint64_t index : far) Made(ipam::LeaseKey::Block(pool, index));
  EXPECT_EQ(Indices(store_->Blocks(pool, 0, 100)), far);
  EXPECT_EQ(Indices(store_->Blocks(pool, 257, 2)), (Indexes{65536, 16777216}));
  EXPECT_EQ(Indices(store_->Blocks(pool, (1ULL << 56U) + 1, 2)), (Indexes{(1ULL << 60U) + 5}));
}

TEST_P(ContractTest, NodesComeByName) {
  for (const char* name : {"node-b", "node-a", "node-a.x", "node-c"}) Made(ipam::LeaseKey::Node(name));
  Made(ipam::LeaseKey::Block(kPool, 1));
  EXPECT_EQ(Names(store_->Nodes("", 10)), (NodeNames{"node-a", "node-a.x", "node-b", "node-c"}));
  EXPECT_EQ(Names(store_->Nodes("", 2)), (NodeNames{"node-a", "node-a.x"}));
  EXPECT_EQ(Names(store_->Nodes("node-a", 2)), (NodeNames{"node-a.x", "node-b"}));
  EXPECT_EQ(Names(store_->Nodes("node-aa", 10)), (NodeNames{"node-b", "node-c"}));
  EXPECT_EQ(Names(store_->Nodes("node-c", 10)), NodeNames{});
  EXPECT_EQ(store_->Nodes("node-b", 1)->at(0), **store_->Get(ipam::LeaseKey::Node("node-c")));
}

TEST_P(ContractTest, LongLists) {
  Indexes all;
  for (std::uint64_t i = 0; i < 300; ++i) {
    Made(ipam::LeaseKey::Block(kPool, i * 3));
    all.push_back(i * 3);
  }
  EXPECT_EQ(Indices(store_->Blocks(kPool, 0, 1000)), all);
  EXPECT_EQ(Indices(store_->Blocks(kPool, 0, 299)).size(), 299U);
}

TEST_P(ContractTest, CallsAreCounted) {
  const std::uint64_t before = store_->calls();
  Made(ipam::LeaseKey::Node("node0"));
  const std::uint64_t after = store_->calls();
  EXPECT_GT(after, before);
  ASSERT_TRUE(store_->Get(ipam::LeaseKey::Node("node0")));
  EXPECT_EQ(store_->calls(), after + 1);
}

TEST_P(ServiceTest, ImpossibleNamesAreRefused) {
  for (const ipam::LeaseKey& key :
       {ipam::LeaseKey::Block("no subnet", 1), ipam::LeaseKey::Block("10.0.0.1/8", 1),
        ipam::LeaseKey::Node(""), ipam::LeaseKey::Node("a/b")}) {
    auto made = store_->Create(key, "{}");
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kInvalid) << Describe(made.error());
  }
}

TEST_P(ServiceTest, OfManyAtOnceOneWins) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 10;
  std::vector<std::vector<int>> won(kThreads);
  std::vector<std::unique_ptr<ipam::ClusterStore>> clients;
  for (int i = 0; i < kThreads; ++i) clients.push_back(service_->Client());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      auto& client = *clients[static_cast<std::size_t>(i)];
      for (int round = 0; round < kRounds; ++round) {
        const auto key = ipam::LeaseKey::Block(kPool, static_cast<std::uint64_t>(round));
        auto made = client.Create(key, "{\"node\":\"" + std::to_string(i) + "\"}");
        if (made) won[static_cast<std::size_t>(i)].push_back(round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::multiset<int> rounds;
  for (int i = 0; i < kThreads; ++i) {
    for (const int round : won[static_cast<std::size_t>(i)]) {
      rounds.insert(round);
      const auto entry = store_->Get(ipam::LeaseKey::Block(kPool, static_cast<std::uint64_t>(round)));
      EXPECT_EQ((*entry)->value, "{\"node\":\"" + std::to_string(i) + "\"}");
    }
  }
  EXPECT_EQ(rounds.size(), static_cast<std::size_t>(kRounds));
  EXPECT_EQ(std::set<int>(rounds.begin(), rounds.end()).size(), static_cast<std::size_t>(kRounds));
}

INSTANTIATE_TEST_SUITE_P(Stores, ServiceTest, ::testing::ValuesIn(Services()),
                         [](const auto& named) { return named.param.name; });
INSTANTIATE_TEST_SUITE_P(Stores, ContractTest, ::testing::ValuesIn(StoresUnderTest()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace railhead::testing
