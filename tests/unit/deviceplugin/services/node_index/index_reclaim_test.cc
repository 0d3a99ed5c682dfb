// Claims of removed nodes, as their neighbors see them.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "deviceplugin/services/node_index/index_claim.h"
#include "tests/unit/deviceplugin/services/node_index/index_support.h"

namespace railhead::node_index {
namespace {

using testing::HasEvent;
using testing::IndexClaimTest;
using testing::kHourMs;
using testing::TestNode;
using Kind = IndexEvent::Kind;
using Holders = std::map<int, std::string>;

TEST_F(IndexClaimTest, TheClaimOfARemovedNodeIsFreedLater) {
  a_.Step();
  b_.Step();
  cluster_.nodes.erase("b");
  auto passed = a_.Pass(23 * kHourMs);
  EXPECT_FALSE(HasEvent(passed, Kind::kFreed));
  EXPECT_EQ(cluster_.Holders().size(), 2U);
  passed = a_.Pass(8 * kHourMs);
  EXPECT_TRUE(HasEvent(passed, Kind::kFreed));
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}}));
  // It comes back to its disk: the index is still free.
  cluster_.nodes["b"] = {"new", "MACHINE-b"};
  b_.Step();
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}, {1, "b"}}));
}

TEST_F(IndexClaimTest, TimeWithoutAnAnswerDoesNotCount) {
  a_.Step();
  b_.Step();
  cluster_.nodes.erase("b");
  a_.Pass(4 * kHourMs);
  a_.store().cut = true;
  a_.Pass(40 * kHourMs);
  a_.store().cut = false;
  EXPECT_FALSE(HasEvent(a_.Pass(20 * kHourMs), Kind::kFreed));
  EXPECT_TRUE(HasEvent(a_.Pass(11 * kHourMs), Kind::kFreed));
}

TEST_F(IndexClaimTest, ANodeThatIsBackKeepsItsIndex) {
  a_.Step();
  b_.Step();
  cluster_.nodes["b"].uid = "new";
  a_.Pass(20 * kHourMs);
  EXPECT_TRUE(HasEvent(b_.Step(), Kind::kTakenOver));
  EXPECT_FALSE(HasEvent(a_.Pass(40 * kHourMs), Kind::kFreed));
  // The mark of a node that ended before it removed the claim.
  Write(1, {"b", "new", "a"});
  b_.Step();
  EXPECT_EQ(RecordOf(1), (IndexRecord{"b", "new", ""}));
  EXPECT_EQ(b_.Index(), 1);
}

TEST_F(IndexClaimTest, ASuspendedObserverBeginsAgain) {
  a_.Step();
  b_.Step();
  cluster_.nodes.erase("b");
  a_.Pass(20 * kHourMs);
  a_.now_ms += 200 * kHourMs;
  EXPECT_FALSE(HasEvent(a_.Pass(20 * kHourMs), Kind::kFreed)) << "it has not seen the node gone meanwhile";
  EXPECT_TRUE(HasEvent(a_.Pass(11 * kHourMs), Kind::kFreed));
}

TEST_F(IndexClaimTest, AWallClockThatIsSetFreesNothing) {
  a_.Step();
  b_.Step();
  cluster_.nodes.erase("b");
  a_.Pass(4 * kHourMs);
  a_.wall_lead_s = 10'000'000;
  EXPECT_FALSE(HasEvent(a_.Pass(18 * kHourMs), Kind::kFreed));
  a_.wall_lead_s = -10'000'000;
  EXPECT_TRUE(HasEvent(a_.Pass(8 * kHourMs), Kind::kFreed)) << "nor does it hold it back";
}

// One failed request does not cost the time that was seen before.
TEST_F(IndexClaimTest, AFailedCheckIsMadeAgain) {
  a_.Step();
  b_.Step();
  cluster_.nodes.erase("b");
  bool fails = false;
  a_.store().node_fails = [&](const std::string& name) { return name == "b" && std::exchange(fails, false); };
  bool freed = false;
  for (int hour = 0; hour < 30; ++hour) {
    fails = true;
    freed = HasEvent(a_.Pass(kHourMs), Kind::kFreed) || freed;
  }
  EXPECT_TRUE(freed);
}

TEST_F(IndexClaimTest, AClaimThatNobodyCanReadStaysTaken) {
  WriteText(0, R"({"node": 7})");
  WriteText(2, "null");
  const auto first = a_.Step();
  EXPECT_EQ(a_.Index(), 1);
  b_.Step();
  EXPECT_EQ(b_.Index(), 3);
  EXPECT_FALSE(first.problem) << Describe(*first.problem);
  std::string reported;
  for (const IndexEvent& event : first.events) {
    if (event.kind == Kind::kUnreadable) reported += event.detail + "\n";
  }
  EXPECT_NE(reported.find("NodeIndex node-0"), std::string::npos) << reported;
  EXPECT_NE(reported.find("NodeIndex node-2"), std::string::npos) << reported;
  EXPECT_FALSE(HasEvent(a_.Pass(100 * kHourMs), Kind::kUnreadable)) << "reported once";
  EXPECT_EQ(a_.disk->unreadable.size(), 2U);
  EXPECT_EQ(cluster_.Holders().size(), 4U) << "nobody removes them";
  Remove(0);
  a_.Pass(4 * kHourMs);
  EXPECT_EQ(a_.disk->unreadable.size(), 1U);
}

// A node's token can claim any number of indices for its node. They hide no claim of a node that is gone, the
// node is named, and what is left without an index says whose fault it is.
TEST_F(IndexClaimTest, ANodeWithManyClaimsHidesNothingAndIsNamed) {
  a_.Step();
  b_.Step();
  TestNode gone(cluster_, "gone");
  gone.needs.fits = [](int index) { return index < 64; };
  for (std::uint64_t index = 2; index < 40; ++index)
    WriteText(index, Encode(IndexRecord{"b", cluster_.nodes.at("b").uid, ""}));
  gone.Step();
  EXPECT_EQ(gone.Index(), 40);
  const auto found = a_.Pass(4 * kHourMs);
  ASSERT_TRUE(HasEvent(found, Kind::kCrowded));
  EXPECT_FALSE(HasEvent(a_.Pass(4 * kHourMs), Kind::kCrowded)) << "reported once";
  ASSERT_EQ(a_.disk->crowded.size(), 1U);
  EXPECT_EQ(a_.disk->crowded[0], "node b has claimed at least 39 indices");
  cluster_.nodes.erase("gone");
  EXPECT_TRUE(HasEvent(a_.Pass(31 * kHourMs), Kind::kFreed));
  EXPECT_EQ(cluster_.Holders().count(40), 0U);
  for (std::uint64_t index = 2; index < 40; ++index) Remove(index);
  a_.Pass(4 * kHourMs);
  EXPECT_TRUE(a_.disk->crowded.empty());
}

TEST_F(IndexClaimTest, ANodeWithoutAnIndexNamesTheNodeThatHasMany) {
  b_.Step();
  for (std::uint64_t index = 1; index < 8; ++index)
    WriteText(index, Encode(IndexRecord{"b", cluster_.nodes.at("b").uid, ""}));
  const auto stepped = a_.Step();
  ASSERT_TRUE(stepped.problem);
  EXPECT_NE(stepped.problem->message.find("8 are claimed, 8 of them by node b"), std::string::npos)
      << Describe(*stepped.problem);
}

// All claims of one removed node go, however many it had.
TEST_F(IndexClaimTest, ManyClaimsOfARemovedNodeAreFreed) {
  a_.Step();
  for (std::uint64_t index = 1; index < 700; ++index) WriteText(index, Encode(IndexRecord{"lost", "u", ""}));
  a_.Pass(60 * kHourMs);
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}}));
}

TEST_F(IndexClaimTest, AClaimThatCannotBeRemovedIsReportedAndRemovedLater) {
  TestNode c(cluster_, "c");
  for (TestNode* node : {&a_, &b_, &c}) node->Step();
  cluster_.nodes.erase("b");
  cluster_.nodes.erase("c");
  a_.store().remove_fails = [](std::uint64_t index) { return index == 1; };
  auto passed = a_.Pass(31 * kHourMs);
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}, {1, "b"}})) << "one that is blocked blocks no other";
  EXPECT_NE(a_.disk->reclaim_problem, "");
  a_.store().remove_fails = nullptr;
  EXPECT_TRUE(HasEvent(a_.Pass(4 * kHourMs), Kind::kFreed)) << "not a whole reclaimSeconds later";
  EXPECT_EQ(a_.disk->reclaim_problem, "");
}

TEST_F(IndexClaimTest, WithoutReclaimSecondsNothingIsFreedButTheUnreadableIsReported) {
  a_.reclaim = {};
  a_.Restart();
  a_.Step();
  b_.Step();
  WriteText(2, "null");
  cluster_.nodes.erase("b");
  Write(3, {"c", "gone", "a"});
  const auto passed = a_.Pass(100 * kHourMs);
  EXPECT_FALSE(HasEvent(passed, Kind::kFreed));
  EXPECT_EQ(cluster_.Holders().size(), 4U);
  EXPECT_TRUE(HasEvent(passed, Kind::kUnreadable));
  EXPECT_EQ(a_.disk->unreadable.size(), 1U);
}

}  // namespace
}  // namespace railhead::node_index
