// Allocations from a leased pool: only from usable blocks, and only while the lease holds.
#include "ipam/store/node_blocks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ipam/plugin/ipam_config.h"
#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

using testing::At;
using testing::MakePool;
using testing::OwnerNumber;
using testing::Range;
using testing::ScratchRoot;
using testing::StoreAt;

constexpr const char* kSubnet = "10.7.0.0/24";

NodeBlock Block(std::uint64_t index, const std::string& range, BlockState state) {
  return {kSubnet, index, Range(range), state, "instance", "nonce", "boot-a", 1000, 3};
}

NodeLease Lease(const ClockReading& renewed, std::uint64_t fence_ms) {
  return {"node", "machine",       "instance",          "before", "s2", "s1", 7,
          true,   renewed.boot_id, renewed.boottime_ms, fence_ms};
}

class NodeBlocksTest : public ::testing::Test {
 protected:
  NodeBlocksTest() : pool_(MakePool(kSubnet, {}, 0)) { pool_.leased = true; }

  void Put(const NodeLease& lease, const std::vector<NodeBlock>& blocks) {
    auto store = AddressStore::Open(scratch_.root());
    ASSERT_TRUE(store);
    const auto written = store->Transact([&](LmdbTxn& txn, const ClockReading&) -> Result<bool> {
      RH_TRY(WriteNodeLease(txn, lease));
      for (const NodeBlock& block : blocks) RH_TRY(WriteNodeBlock(txn, block));
      return true;
    });
    ASSERT_TRUE(written) << written.error().message;
  }
  Result<AddressRecord> Allocate(int owner, const ClockReading& now) {
    auto store = RH_TRY(StoreAt::Open(scratch_.root()));
    return store.Allocate(OwnerNumber(owner), pool_, now);
  }
  void ExpectRefused(const ClockReading& now, const std::string& because) {
    const auto given = Allocate(1, now);
    ASSERT_FALSE(given) << given->address.ToString();
    EXPECT_EQ(given.error().code, ErrorCode::kBusy);
    EXPECT_NE(given.error().message.find(because), std::string::npos) << given.error().message;
    EXPECT_FALSE(given.error().hint.empty());
  }

  ScratchRoot scratch_;
  AddressPool pool_;
};

TEST_F(NodeBlocksTest, RecordsComeBackAsTheyWere) {
  const NodeLease lease = Lease(At(5), 99);
  const std::vector<NodeBlock> blocks = {Block(1, "10.7.0.16-10.7.0.31", BlockState::kUsable),
                                         Block(300, "10.7.0.32-10.7.0.47", BlockState::kLost)};
  Put(lease, blocks);
  auto store = AddressStore::Open(scratch_.root());
  ASSERT_TRUE(store);
  const auto read = store->Transact([&](LmdbTxn& txn, const ClockReading&) -> Result<bool> {
    EXPECT_EQ(RH_TRY(ReadNodeLease(txn)), lease);
    EXPECT_EQ(RH_TRY(ReadAllNodeBlocks(txn)), blocks);
    EXPECT_EQ(RH_TRY(ReadNodeBlocks(txn, kSubnet)), blocks);
    EXPECT_EQ(RH_TRY(ReadNodeBlocks(txn, "10.7.0.0/2")), std::vector<NodeBlock>{});
    RH_TRY(EraseNodeBlock(txn, kSubnet, 300));
    EXPECT_EQ(RH_TRY(ReadAllNodeBlocks(txn)).size(), 1U);
    return false;
  });
  EXPECT_TRUE(read) << read.error().message;
}

TEST_F(NodeBlocksTest, OnlyUsableBlocksAreHandedOut) {
  Put(Lease(At(100), 3'600'000), {Block(0, "10.7.0.0-10.7.0.15", BlockState::kProvisional),
                                  Block(1, "10.7.0.16-10.7.0.17", BlockState::kUsable),
                                  Block(3, "10.7.0.48-10.7.0.49", BlockState::kReturning),
                                  Block(9, "10.7.0.254-10.7.0.255", BlockState::kUsable)});
  std::vector<std::string> given;
  for (int owner = 0; owner < 3; ++owner) {
    const auto address = Allocate(owner, At(101));
    ASSERT_TRUE(address) << address.error().message;
    given.push_back(address->address.ToString());
  }
  // .255 is the broadcast address.
  EXPECT_EQ(given, (std::vector<std::string>{"10.7.0.16", "10.7.0.17", "10.7.0.254"}));
  const auto more = Allocate(3, At(102));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kExhausted);
  EXPECT_NE(more.error().hint.find("leases another block"), std::string::npos);
}

TEST_F(NodeBlocksTest, NothingIsHandedOutBeforeTheStoreAnsweredInThisBoot) {
  ExpectRefused(At(10), "has not answered yet");
  Put(Lease(At(100, "boot-a"), 3'600'000), {Block(1, "10.7.0.16-10.7.0.31", BlockState::kUsable)});
  ExpectRefused(At(101, "boot-b"), "since this node was started");
  EXPECT_TRUE(Allocate(1, At(101, "boot-a")));
}

TEST_F(NodeBlocksTest, NothingIsHandedOutBehindTheFence) {
  Put(Lease(At(100), 50'000), {Block(1, "10.7.0.16-10.7.0.31", BlockState::kUsable)});
  EXPECT_TRUE(Allocate(0, At(149.9)));
  ExpectRefused(At(150), "has not answered for 50 s");
  // Held addresses can still be released.
  auto store = StoreAt::Open(scratch_.root());
  ASSERT_TRUE(store);
  EXPECT_EQ(store->Release(OwnerNumber(0), At(151)).value_or(0), 1U);
}

// After the renewal the wall clock may gain a quarter of the reclaim time on the boot clock, and no more.
// Nothing is refused if other nodes never reclaim blocks, or if an older version wrote the record.
TEST_F(NodeBlocksTest, NothingIsHandedOutAfterAPause) {
  const ClockReading renewed = At(100);
  int owner = 0;
  for (const std::uint64_t reclaim_s : {0U, 40U, 86'400U}) {
    for (const bool wall_known : {false, true}) {
      NodeLease lease = Lease(renewed, 3'600'000);
      lease.reclaim_ms = reclaim_s * 1000;
      lease.renewed_wall_seconds = wall_known ? renewed.wall_seconds : 0;
      Put(lease, {Block(1, "10.7.0.0-10.7.0.255", BlockState::kUsable)});
      const auto quarter = static_cast<std::int64_t>(reclaim_s / 4);
      for (const int passed : {0, 7, 300}) {
        for (const std::int64_t ahead :
             {std::int64_t{-100'000}, std::int64_t{0}, quarter, quarter + 1, 10 * quarter + 1}) {
          SCOPED_TRACE(std::to_string(reclaim_s) + " s, " + std::to_string(passed) + " s passed, ahead " +
                       std::to_string(ahead));
          ClockReading now = At(100 + passed);
          now.wall_seconds += ahead;
          if (reclaim_s != 0 && wall_known && ahead > quarter) {
            ExpectRefused(now, "was paused for " + std::to_string(ahead) + " s");
          } else {
            EXPECT_TRUE(Allocate(++owner, now));
          }
        }
      }
    }
  }
}

// A lease that a version without the wall clock wrote.
TEST_F(NodeBlocksTest, ALeaseOfAnOlderVersionIsRead) {
  Put(Lease(At(100), 50'000), {});
  auto store = AddressStore::Open(scratch_.root());
  ASSERT_TRUE(store);
  const auto read = store->Transact([&](LmdbTxn& txn, const ClockReading&) -> Result<bool> {
    const auto whole = RH_TRY(txn.Get("B"));
    const std::string old(whole->substr(0, whole->size() - 16));
    RH_TRY(txn.Put("B", old));
    EXPECT_EQ(RH_TRY(ReadNodeLease(txn)), Lease(At(100), 50'000));
    RH_TRY(txn.Put("B", old + "1234567"));
    EXPECT_FALSE(ReadNodeLease(txn)) << "half a field";
    return false;
  });
  EXPECT_TRUE(read) << read.error().message;
}

TEST_F(NodeBlocksTest, AClockBeforeTheRenewalIsNoneOfThisBoot) {
  Put(Lease(At(100), 50'000), {Block(1, "10.7.0.16-10.7.0.31", BlockState::kUsable)});
  ExpectRefused(At(99), "has not answered for");
}

TEST_F(NodeBlocksTest, TheStatesOfTheBlocksAreReported) {
  Put(Lease(At(100), 50'000), {Block(1, "10.7.0.16-10.7.0.31", BlockState::kProvisional),
                               Block(2, "10.7.0.32-10.7.0.47", BlockState::kLost)});
  ExpectRefused(At(101), "1 provisional, 1 lost");
}

TEST_F(NodeBlocksTest, ARailWithoutRangesIsLeasedWhereThereIsAClusterStore) {
  const auto pool_of = [&](const std::string& rail, const std::string& store) {
    scratch_.Write("/etc/railhead/node-name", "n1\n");
    scratch_.Write("/etc/railhead/fabric.json",
                   R"({"version": 1, "rails": [{"name": "rail0", "pf": "p0", "subnet": "10.7.0.0/24")" +
                       rail + R"(}], "addresses": {"store": {"type": ")" + store + R"("}}})");
    return ResolvePools(R"({"name": "net", "ipam": {"type": "railhead-ipam", "rail": "rail0"}})", {},
                        scratch_.root());
  };
  const auto leased = pool_of("", "etcd");
  ASSERT_TRUE(leased) << Describe(leased.error());
  EXPECT_TRUE(leased->addresses.front().choices.front().pool.leased);
  const auto own_range = pool_of(R"(, "nodeRanges": {"n1": "10.7.0.10-10.7.0.19"})", "kubernetes");
  ASSERT_TRUE(own_range) << Describe(own_range.error());
  EXPECT_FALSE(own_range->addresses.front().choices.front().pool.leased);
  EXPECT_FALSE(pool_of("", "node"));
  const auto unknown = pool_of("", "zookeeper");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("/addresses/store/type"), std::string::npos)
      << unknown.error().message;
}

}  // namespace
}  // namespace railhead::ipam
