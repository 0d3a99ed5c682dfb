// The daemon's thread, on a real store and with the machine's own clock.
#include "deviceplugin/services/address_leasing/leasing_service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ipam/store/store.h"
#include "tests/support/eventually.h"
#include "tests/support/ipam/support.h"
#include "tests/support/lease/memory_store.h"

namespace railhead::address_leasing {
namespace {

using testing::Eventually;
using testing::MakePool;
using testing::MemoryCluster;
using testing::MemoryStore;
using testing::ScratchRoot;

constexpr const char* kSubnet = "10.7.0.0/24";

class LeasingLoopTest : public ::testing::Test {
 protected:
  std::unique_ptr<LeasingLoop> Run(MemoryCluster& cluster) {
    ipam::LeaseSettings settings{"node", "machine", {}, 8, {}};
    settings.times = {std::chrono::milliseconds(50), std::chrono::hours(12), std::chrono::hours(24),
                      std::chrono::seconds(0)};
    settings.pools.push_back(ipam::PoolLayout::Make(MakePool(kSubnet, {}, 0).ranges, 16).value());
    auto loop =
        LeasingLoop::Start(scratch_.root(), std::move(settings), std::make_unique<MemoryStore>(cluster),
                           [](const ipam::Leaser::Outcome&) {});
    EXPECT_TRUE(loop);
    return loop ? std::move(*loop) : nullptr;
  }
  Result<ipam::AddressRecord> Allocate(const std::string& pod) {
    auto store = RH_TRY(ipam::AddressStore::Open(scratch_.root()));
    ipam::AddressPool pool = MakePool(kSubnet, {}, 0);
    pool.leased = true;
    return store.Allocate({"net", pod, "net1"}, pool);
  }
  static std::uint64_t Free(const LeasingLoop& loop) {
    const auto status = loop.Status();
    return status ? status->free.at(kSubnet) : 0;
  }

  ScratchRoot scratch_;
};

TEST_F(LeasingLoopTest, LeasesAndTellsWhatItHas) {
  MemoryCluster cluster;
  const auto loop = Run(cluster);
  ASSERT_TRUE(loop);
  ASSERT_TRUE(Eventually([&] { return loop->Events(ipam::LeaseEvent::Kind::kUsable) == 1; }));
  ASSERT_TRUE(Eventually([&] { return Free(*loop) >= 14; }));
  const auto status = loop->Status();
  EXPECT_EQ(status->blocks.at({kSubnet, ipam::BlockState::kUsable}), 1U);
  EXPECT_FALSE(status->fenced);
  EXPECT_GT(status->store_requests, 3U);
  EXPECT_EQ(status->failures, 0U);
  EXPECT_TRUE(status->since_renewal_ms);
}

TEST_F(LeasingLoopTest, NoticesThatAddressesWereGiven) {
  MemoryCluster cluster;
  const auto loop = Run(cluster);
  ASSERT_TRUE(loop);
  ASSERT_TRUE(Eventually([&] { return Free(*loop) >= 14; }));
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(Allocate("pod" + std::to_string(i)));
  EXPECT_TRUE(Eventually([&] { return loop->Events(ipam::LeaseEvent::Kind::kUsable) == 2; }));
}

TEST_F(LeasingLoopTest, OneRailheaddLeasesAtATime) {
  MemoryCluster cluster;
  auto first = Run(cluster);
  ASSERT_TRUE(first);
  ASSERT_TRUE(Eventually([&] { return first->Status().has_value(); }));
  MemoryCluster other;
  const auto second = Run(other);
  ASSERT_TRUE(second);
  // Time enough for several steps of the one that may.
  const std::uint64_t calls = first->Status()->store_requests;
  ASSERT_TRUE(Eventually([&] { return first->Status()->store_requests >= calls + 5; }));
  EXPECT_FALSE(second->Status());
  EXPECT_TRUE(other.records().empty());
  first->Stop();
  EXPECT_TRUE(first->AwaitEnd(std::chrono::seconds(30)));
  EXPECT_TRUE(Eventually([&] { return second->Status().has_value(); }));
}

TEST(LeasePlan, IsMadeOfTheRailsWithoutRangesOfTheirOwn) {
  ScratchRoot scratch;
  const auto plan_of = [&](const std::string& store) {
    scratch.Write("/etc/railhead/node-name", "n1\n");
    scratch.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [
      {"name": "rail0", "pf": "p0", "subnet": "10.7.0.0/24", "gateway": "10.7.0.1", "exclude": ["10.7.0.16-10.7.0.31"]},
      {"name": "rail1", "pf": "p1", "subnet": "10.8.0.0/24", "nodeBlock": 28}, {"name": "rail2", "pf": "p2"}],
      "nodes": {"n1": 1}, "addresses": {"reuseDelaySeconds": 300, "store": )" +
                                                   store + "}}");
    return PlanLeases(scratch.root(), "/etc/railhead/fabric.json");
  };
  const auto plan = plan_of(R"({"type": "etcd", "blockSize": 16, "etcd": {"endpoints": ["x"]}})");
  ASSERT_TRUE(plan) << Describe(plan.error());
  ASSERT_TRUE(*plan);
  EXPECT_EQ((*plan)->settings.node, "n1");
  EXPECT_EQ((*plan)->settings.low_water, 8U);
  EXPECT_EQ((*plan)->settings.times.reuse_delay, std::chrono::seconds(300));
  EXPECT_EQ((*plan)->store.etcd, R"({"endpoints":["x"]})");
  ASSERT_EQ((*plan)->settings.pools.size(), 1U);
  const ipam::PoolLayout& pool = (*plan)->settings.pools.front();
  EXPECT_EQ(pool.pool(), "10.7.0.0/24");
  EXPECT_EQ(pool.Count(), 16U);
  EXPECT_EQ(pool.AddressesOf(0), 14U);
  EXPECT_EQ(pool.NextFrom(1), 2U);
  EXPECT_EQ(pool.NextFrom(16), std::nullopt);
  const auto none = plan_of(R"({"type": "node"})");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(LeasingTest, AnotherFabricIsAnotherLoop) {
  ScratchRoot scratch;
  Log log("error");
  Leasing leasing(scratch.root(), &log);
  scratch.Write("/etc/railhead/node-name", "n1\n");
  const auto follow = [&](const std::string& exclude, const std::string& store) {
    scratch.Write(
        "/etc/railhead/fabric.json",
        R"({"version": 1, "rails": [{"name": "rail0", "pf": "p0", "subnet": "10.7.0.0/24", "exclude": [)" +
            exclude + R"(]}], "addresses": {"store": )" + store + "}}");
    return leasing.Follow("/etc/railhead/fabric.json", {});
  };
  // Nobody answers there: the loop retries.
  const std::string etcd = R"({"type": "etcd", "etcd": {"endpoints": ["http://127.0.0.1:1"]}})";
  ASSERT_TRUE(follow("", R"({"type": "node"})"));
  EXPECT_EQ(leasing.loop(), nullptr);
  ASSERT_TRUE(follow("", etcd));
  const auto first = leasing.loop();
  ASSERT_NE(first, nullptr);
  ASSERT_TRUE(follow("", etcd));
  EXPECT_EQ(leasing.loop(), first) << "nothing has changed";
  ASSERT_TRUE(follow(R"("10.7.0.9")", etcd));
  const auto second = leasing.loop();
  EXPECT_NE(second, first);
  EXPECT_TRUE(first->AwaitEnd(std::chrono::seconds(30)));
  EXPECT_FALSE(follow("", R"({"type": "etcd", "etcd": {}})"));
  EXPECT_EQ(leasing.loop(), second) << "the former one goes on";
  ASSERT_TRUE(follow("", R"({"type": "node"})"));
  EXPECT_EQ(leasing.loop(), nullptr);
  EXPECT_TRUE(second->AwaitEnd(std::chrono::seconds(30)));
}

TEST(LeasePlan, MistakesAreReportedWithTheirPlace) {
  const auto error_of = [](const std::string& store) {
    const auto parsed = ipam::ParseLeaseSettings(store, "fabric.json", std::chrono::seconds(600));
    return parsed ? std::string("none") : parsed.error().message;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"type": "zookeeper"})", "/type"},
      {R"({"type": "etcd", "blockSize": 48})", "/blockSize"},
      {R"({"type": "etcd", "lowWater": 0})", "/lowWater"},
      {R"({"type": "etcd", "renewSeconds": 600, "fenceSeconds": 1200})", "/fenceSeconds"},
      {R"({"type": "etcd", "reclaimSeconds": 50000})", "/reclaimSeconds"},
      {R"({"type": "etcd", "renewSeconds": 1, "fenceSeconds": 200, "reclaimSeconds": 500})",
       "/reclaimSeconds"},
      {R"({"type": "etcd", "blocksize": 64})", "/blocksize"}};
  for (const auto& [store, place] : cases) {
    const std::string error = error_of(store);
    EXPECT_EQ(error.find("fabric.json: /addresses/store" + place + ": "), 0U) << error;
  }
  EXPECT_EQ(error_of(R"({"type": "etcd", "reclaimSeconds": 0})"), "none");
}

}  // namespace
}  // namespace railhead::address_leasing
