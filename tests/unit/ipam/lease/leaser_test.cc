// The leaser of one or two nodes, step by step.
#include "ipam/lease/leaser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/support/lease/memory_store.h"
#include "tests/support/lease/node.h"

namespace railhead::ipam {
namespace {

using testing::MemoryCluster;
using testing::MemoryStore;
using testing::TestNode;
using testing::TestPools;
using Kind = LeaseEvent::Kind;

constexpr const char* kSubnet = "10.7.0.0/24";
constexpr std::uint64_t kRenewMs = 60'000;

bool HasEvent(const Leaser::Outcome& outcome, Kind kind) {
  return std::any_of(outcome.events.begin(), outcome.events.end(),
                     [&](const LeaseEvent& event) { return event.kind == kind; });
}

class LeaserTest : public ::testing::Test {
 protected:
  LeaserTest() : a_(cluster_, "a", pools_, 1), b_(cluster_, "b", pools_, 2) {}

  // Lets `ms` pass, with a step whenever the leasers want one.
  Leaser::Outcome Pass(TestNode& node, std::uint64_t ms) {
    Leaser::Outcome all = node.Settle();
    for (std::uint64_t passed = 0; passed < ms; passed += 5'000) {
      node.Pass(5'000);
      Leaser::Outcome one = node.Settle();
      std::move(one.events.begin(), one.events.end(), std::back_inserter(all.events));
      if (one.problem) all.problem = std::move(one.problem);
    }
    return all;
  }
  void Start(TestNode& node) {
    node.StartDaemon();
    Pass(node, 3 * kRenewMs);
    ASSERT_FALSE(node.BlocksIn(BlockState::kUsable).empty());
  }
  // The block's record in the cluster store. A default record if the store has none.
  [[nodiscard]] BlockRecord RecordOf(const NodeBlock& block) const {
    const auto entry = cluster_.Get(KeyOf(block));
    if (!entry || !*entry) return {};
    return ParseBlockRecord(**entry).value_or(BlockRecord{});
  }
  void Overwrite(const NodeBlock& block, const std::string& node, bool leased) {
    const auto entry = cluster_.Get(KeyOf(block));
    ASSERT_TRUE(entry && *entry);
    ASSERT_TRUE(cluster_.Update(**entry, Encode(BlockRecord{node, "i", "n", leased})));
  }
  // Restores records that the node wrote at an earlier time.
  void RestoreTo(const MemoryCluster::Records& records) { cluster_.Restore(records); }

  TestPools pools_;
  MemoryCluster cluster_;
  TestNode a_;
  TestNode b_;
};

TEST_F(LeaserTest, ABlockIsUsableWhenItsProvisionalTimeIsOver) {
  a_.StartDaemon();
  auto first = a_.Settle();
  EXPECT_FALSE(first.problem) << Describe(*first.problem);
  EXPECT_TRUE(HasEvent(first, Kind::kAllocated));
  ASSERT_EQ(a_.BlocksIn(BlockState::kProvisional).size(), 1U);
  EXPECT_FALSE(RecordOf(a_.Blocks().front()).leased);
  const auto refused = a_.Allocate("pod", kSubnet);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  Pass(a_, 2 * kRenewMs - 5'000);
  EXPECT_TRUE(a_.BlocksIn(BlockState::kUsable).empty());
  Pass(a_, 5'000);
  ASSERT_EQ(a_.BlocksIn(BlockState::kUsable).size(), 1U);
  EXPECT_TRUE(RecordOf(a_.Blocks().front()).leased);
  EXPECT_TRUE(a_.Allocate("pod", kSubnet));
}

TEST_F(LeaserTest, AllocatingAsksTheClusterStoreNothing) {
  Start(a_);
  const std::uint64_t calls = a_.store().calls();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(a_.Allocate("pod" + std::to_string(i), kSubnet));
  ASSERT_TRUE(a_.Release("pod0"));
  EXPECT_EQ(a_.store().calls(), calls);
  EXPECT_GT(calls, 0U);
}

TEST_F(LeaserTest, RenewingIsOneCall) {
  Start(a_);
  const std::uint64_t calls = a_.store().calls();
  const std::string revision = (*cluster_.Get(LeaseKey::Node("a")))->revision;
  for (int i = 0; i < 100 && (*cluster_.Get(LeaseKey::Node("a")))->revision == revision; ++i) {
    a_.Pass(1'000);
    a_.Settle();
  }
  EXPECT_EQ(a_.store().calls(), calls + 1);
}

TEST_F(LeaserTest, AnotherBlockIsAllocatedBelowTheLowWaterMarkAndReturnedWhenEmpty) {
  Start(a_);
  // Up to two addresses of a block are reserved ones.
  std::vector<std::string> pods;
  for (int i = 0; i < 10; ++i) pods.push_back("pod" + std::to_string(i));
  for (const auto& pod : pods) ASSERT_TRUE(a_.Allocate(pod, kSubnet));
  Pass(a_, 3 * kRenewMs);
  EXPECT_EQ(a_.BlocksIn(BlockState::kUsable).size(), 2U);
  for (const auto& pod : pods) ASSERT_TRUE(a_.Release(pod));
  Pass(a_, 90'000);
  // All of its addresses are in their reuse delay.
  EXPECT_EQ(a_.Blocks().size(), 2U);
  const auto later = Pass(a_, 20'000);
  EXPECT_TRUE(HasEvent(later, Kind::kReturned));
  ASSERT_EQ(a_.Blocks().size(), 1U);
  EXPECT_EQ(cluster_.Blocks(kSubnet, 0, 99).size(), 2U);  // and the layout
}

TEST_F(LeaserTest, TwoNodesNeverHaveTheSameBlock) {
  a_.StartDaemon();
  TestNode same_start(cluster_, "a2", pools_, 3);
  same_start.StartDaemon();
  std::vector<std::string> seen;
  for (TestNode* node : {&a_, &same_start}) {
    Pass(*node, 3 * kRenewMs);
    for (int i = 0; i < 12; ++i) {
      const auto given = node->Allocate("pod" + std::to_string(i), kSubnet);
      if (given) seen.push_back(given->address.ToString());
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_GE(seen.size(), 20U);
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST_F(LeaserTest, AnswersThatAreLostChangeNothing) {
  using Fault = MemoryStore::Fault;
  for (const Fault fault : {Fault::kTimeoutBefore, Fault::kTimeoutAfter, Fault::kDelayed}) {
    MemoryCluster cluster;
    TestNode node(cluster, "n", pools_, 7);
    std::minstd_rand random(3);
    node.store().fault = [&] { return random() % 3 == 0 ? fault : Fault::kNone; };
    node.StartDaemon();
    for (int i = 0; i < 100; ++i) {
      node.Pass(5'000);
      node.Settle();
      node.store().DeliverDelayed();
    }
    EXPECT_EQ(node.BlocksIn(BlockState::kUsable).size(), 1U) << static_cast<int>(fault);
    EXPECT_EQ(node.Blocks().size(), 1U);
    EXPECT_EQ(cluster.Blocks(kSubnet, 0, 99).size(), 2U);
    EXPECT_TRUE(node.Allocate("pod", kSubnet));
  }
}

TEST_F(LeaserTest, WithoutAnswersNothingIsHandedOutBehindTheFence) {
  Start(a_);
  a_.store().fault = [] { return MemoryStore::Fault::kUnavailable; };
  const auto cut = Pass(a_, 1'700'000);
  EXPECT_TRUE(cut.problem);
  EXPECT_TRUE(a_.Allocate("early", kSubnet));
  EXPECT_FALSE(a_.leaser().Status(a_.now()).fenced);
  Pass(a_, 101'000);
  const auto late = a_.Allocate("late", kSubnet);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kBusy);
  EXPECT_TRUE(a_.leaser().Status(a_.now()).fenced);
  a_.store().fault = [] { return MemoryStore::Fault::kNone; };
  Pass(a_, 60'000);
  EXPECT_TRUE(a_.Allocate("late", kSubnet));
}

TEST_F(LeaserTest, AfterARebootOneAnswerIsNeeded) {
  Start(a_);
  ASSERT_TRUE(a_.Allocate("pod", kSubnet));
  a_.Reboot();
  EXPECT_FALSE(a_.Allocate("new", kSubnet));
  a_.StartDaemon();
  const std::uint64_t calls = a_.store().calls();
  const auto settled = a_.Settle();
  EXPECT_FALSE(HasEvent(settled, Kind::kUnknownWriter));
  EXPECT_TRUE(a_.Allocate("new", kSubnet));
  // The record, the renewal, and a check of the neighbours.
  EXPECT_LE(a_.store().calls() - calls, 4U);
}

// Ending reuse delays is a write too, and must not count as the boot's first write.
TEST_F(LeaserTest, LookingAtTheStoreDoesNotHideThatABootIsNew) {
  Start(a_);
  ASSERT_TRUE(a_.Allocate("released", kSubnet));
  ASSERT_TRUE(a_.Allocate("held", kSubnet));
  ASSERT_TRUE(a_.Release("released"));
  a_.Reboot();
  a_.Pass(200'000);
  a_.StartDaemon();
  a_.Settle();
  auto store = AddressStore::Open(a_.scratch().root(), a_.clocks());
  ASSERT_TRUE(store);
  const auto earlier = store->ReleaseEarlierBoots();
  ASSERT_TRUE(earlier);
  EXPECT_EQ(earlier->size(), 1U);
}

TEST_F(LeaserTest, ADaemonThatIsKilledAgainAndAgainIsStillItself) {
  Start(a_);
  for (int i = 0; i < 5; ++i) {
    a_.StartDaemon();
    a_.store().fault = [] { return MemoryStore::Fault::kTimeoutAfter; };
    a_.Settle();
    a_.StartDaemon();
    a_.store().fault = [] { return MemoryStore::Fault::kNone; };
    const auto settled = a_.Settle();
    EXPECT_FALSE(settled.problem);
    for (const Kind kind : {Kind::kUnknownWriter, Kind::kRestored, Kind::kReclaimedByOthers})
      EXPECT_FALSE(HasEvent(settled, kind));
  }
  EXPECT_EQ(a_.BlocksIn(BlockState::kUsable).size(), 1U);
}

TEST_F(LeaserTest, ARestoredClusterStoreGetsTheBlocksBack) {
  Start(a_);
  const auto earlier = cluster_.records();
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(a_.Allocate("pod" + std::to_string(i), kSubnet));
  Pass(a_, 3 * kRenewMs);
  const auto blocks = a_.BlocksIn(BlockState::kUsable);
  ASSERT_EQ(blocks.size(), 2U);
  RestoreTo(earlier);
  const auto seen = Pass(a_, kRenewMs);
  EXPECT_TRUE(HasEvent(seen, Kind::kRestored));
  EXPECT_TRUE(HasEvent(seen, Kind::kReacquired));
  for (const NodeBlock& block : blocks) {
    EXPECT_EQ(RecordOf(block).node, "a");
    EXPECT_TRUE(RecordOf(block).leased);
  }
  // The cluster store lost every record.
  RestoreTo({});
  Pass(a_, kRenewMs);
  for (const NodeBlock& block : blocks) EXPECT_TRUE(RecordOf(block).leased);
}

TEST_F(LeaserTest, AProvisionalBlockOfAnotherNodeIsReacquired) {
  Start(a_);
  const NodeBlock block = a_.BlocksIn(BlockState::kUsable).front();
  RestoreTo({});
  LeaseEntry none{LeaseKey::Block(kSubnet, block.index), "", ""};
  ASSERT_TRUE(cluster_.Create(none.key, Encode(BlockRecord{"b", "i", "n", false})));
  const auto seen = Pass(a_, kRenewMs);
  EXPECT_TRUE(HasEvent(seen, Kind::kReacquired));
  EXPECT_EQ(RecordOf(block).node, "a");
}

TEST_F(LeaserTest, TheOtherNodeAbandonsABlockThatWasReacquired) {
  b_.StartDaemon();
  b_.Settle();
  const NodeBlock block = b_.BlocksIn(BlockState::kProvisional).front();
  Overwrite(block, "a", true);
  const auto seen = Pass(b_, 2 * kRenewMs + 10'000);
  EXPECT_TRUE(HasEvent(seen, Kind::kAbandoned));
  EXPECT_EQ(RecordOf(block).node, "a");
  for (const NodeBlock& other : b_.Blocks()) EXPECT_NE(other.index, block.index);
}

TEST_F(LeaserTest, ABlockThatAnotherLeasesIsLostAndReported) {
  Start(a_);
  const auto given = a_.Allocate("pod", kSubnet);
  ASSERT_TRUE(given);
  const NodeBlock block = a_.BlocksIn(BlockState::kUsable).front();
  RestoreTo({});
  ASSERT_TRUE(cluster_.Create(KeyOf(block), Encode(BlockRecord{"b", "i", "n", true})));
  const auto seen = Pass(a_, kRenewMs);
  const auto lost = std::find_if(seen.events.begin(), seen.events.end(),
                                 [](const LeaseEvent& event) { return event.kind == Kind::kLost; });
  ASSERT_NE(lost, seen.events.end());
  EXPECT_NE(lost->detail.find(given->address.ToString() + " by container pod"), std::string::npos)
      << lost->detail;
  ASSERT_EQ(a_.BlocksIn(BlockState::kLost).size(), 1U);
  const auto other = a_.Allocate("other", kSubnet);
  if (other) {
    EXPECT_FALSE(block.range.Contains(other->address));
  }
  // When the other node gives the block up, this node leases it again. It forgets the block once no address
  // of the block is in use.
  const auto entry = cluster_.Get(KeyOf(block));
  ASSERT_TRUE(cluster_.Remove(**entry));
  Pass(a_, kRenewMs);
  EXPECT_EQ(RecordOf(block).node, "a");
}

TEST_F(LeaserTest, ADiskThatWasPutBackLeavesItsBlocksAlone) {
  Start(a_);
  const std::string copy = a_.scratch().StorePath() + ".copy";
  std::filesystem::copy_file(a_.scratch().StorePath(), copy);
  Pass(a_, 10 * kRenewMs);
  a_.KillDaemon();
  std::filesystem::copy_file(copy, a_.scratch().StorePath(),
                             std::filesystem::copy_options::overwrite_existing);
  a_.StartDaemon();
  const auto seen = a_.Settle();
  EXPECT_TRUE(HasEvent(seen, Kind::kUnknownWriter));
  EXPECT_EQ(a_.BlocksIn(BlockState::kOrphaned).size(), 1U);
  EXPECT_FALSE(a_.Allocate("pod", kSubnet));
  const NodeBlock orphaned = a_.BlocksIn(BlockState::kOrphaned).front();
  Pass(a_, 6 * kRenewMs);
  // Others, after some quiet renewals.
  const auto given = a_.Allocate("pod", kSubnet);
  ASSERT_TRUE(given) << Describe(given.error());
  EXPECT_FALSE(orphaned.range.Contains(given->address));
  // After a restart no pod has an address from the block.
  a_.Reboot();
  a_.StartDaemon();
  Pass(a_, 110'000);
  EXPECT_TRUE(a_.BlocksIn(BlockState::kOrphaned).empty());
  EXPECT_EQ(RecordOf(orphaned).node, "");
}

TEST_F(LeaserTest, AWipedDiskFindsWhatTheNodeHad) {
  Start(a_);
  const NodeBlock before = a_.BlocksIn(BlockState::kUsable).front();
  a_.KillDaemon();
  std::filesystem::remove(a_.scratch().StorePath());
  a_.StartDaemon();
  EXPECT_TRUE(HasEvent(a_.Settle(), Kind::kUnknownWriter));
  ASSERT_EQ(a_.BlocksIn(BlockState::kOrphaned).size(), 1U);
  EXPECT_EQ(a_.BlocksIn(BlockState::kOrphaned).front().range, before.range);
}

TEST_F(LeaserTest, ACopiedDiskIsAnotherInstance) {
  Start(a_);
  a_.KillDaemon();
  a_.Become("another machine");
  a_.StartDaemon();
  EXPECT_TRUE(HasEvent(a_.Settle(), Kind::kUnknownWriter));
  EXPECT_TRUE(a_.BlocksIn(BlockState::kUsable).empty());
}

TEST_F(LeaserTest, TheBlocksOfADeadNodeBecomeFree) {
  Start(a_);
  Start(b_);
  const NodeBlock dead = a_.BlocksIn(BlockState::kUsable).front();
  a_.KillDaemon();
  Pass(b_, 3'300'000);
  EXPECT_EQ(RecordOf(dead).node, "a");
  const auto seen = Pass(b_, 1'000'000);
  EXPECT_TRUE(HasEvent(seen, Kind::kDeadNodeReclaimed));
  EXPECT_EQ(RecordOf(dead).node, "");
  EXPECT_FALSE(*cluster_.Get(LeaseKey::Node("a")));
  // The old owner returns and allocates the block again, since no other node has it.
  a_.Pass(4'500'000);
  a_.StartDaemon();
  EXPECT_TRUE(HasEvent(a_.Settle(), Kind::kReacquired));
  EXPECT_EQ(RecordOf(dead).node, "a");
  EXPECT_TRUE(a_.Allocate("pod", kSubnet));
}

TEST_F(LeaserTest, SilenceCountsOnlyWhileThisNodeCouldHear) {
  Start(a_);
  Start(b_);
  a_.KillDaemon();
  Pass(b_, 1'000'000);
  b_.store().fault = [] { return MemoryStore::Fault::kUnavailable; };
  Pass(b_, 4'000'000);
  b_.store().fault = [] { return MemoryStore::Fault::kNone; };
  EXPECT_FALSE(HasEvent(Pass(b_, 3'000'000), Kind::kDeadNodeReclaimed));
  EXPECT_TRUE(HasEvent(Pass(b_, 1'500'000), Kind::kDeadNodeReclaimed));
}

TEST_F(LeaserTest, AFullPoolIsReportedAndTriedAgainLater) {
  pools_.subnets = {"10.8.0.0/28"};
  TestNode one(cluster_, "one", pools_, 4);
  TestNode two(cluster_, "two", pools_, 5);
  one.StartDaemon();
  one.Settle();
  two.StartDaemon();
  const auto settled = two.Settle();
  EXPECT_TRUE(HasEvent(settled, Kind::kPoolFull));
  EXPECT_GT(settled.wait.count(), 1000);
  EXPECT_TRUE(two.Blocks().empty());
  const std::uint64_t calls = two.store().calls();
  EXPECT_FALSE(HasEvent(Pass(two, 3 * kRenewMs), Kind::kPoolFull)) << "once is enough";
  EXPECT_GT(two.store().calls(), calls + 3) << "it only renewed";
}

TEST_F(LeaserTest, NodesThatDivideTheSubnetDifferentlyDoNotAllocate) {
  a_.StartDaemon();
  a_.Settle();
  pools_.block_size = 32;
  TestNode other(cluster_, "other", pools_, 4);
  other.StartDaemon();
  EXPECT_TRUE(HasEvent(other.Settle(), Kind::kOtherBlockSize));
  EXPECT_FALSE(HasEvent(Pass(other, 3 * kRenewMs), Kind::kOtherBlockSize)) << "once is enough";
  EXPECT_TRUE(other.Blocks().empty());
}

}  // namespace
}  // namespace railhead::ipam
