// Which peers a round probes, and what two bursts show, as values.
#include "deviceplugin/services/reachability/peer_table.h"

#include <gtest/gtest.h>

#include <set>

namespace railhead::testing {
namespace {

using Wall = reachability::PeerTable::Wall;

constexpr std::size_t kPaths = 8;

std::map<std::string, IpAddress> Nodes(int count) {
  std::map<std::string, IpAddress> nodes;
  for (int i = 0; i < count; ++i)
    nodes["node" + std::to_string(1000 + i)] = IpAddress::V4(0x0a640001U + static_cast<unsigned>(i));
  return nodes;
}

class PeerTableTest : public ::testing::Test {
 protected:
  void Begin(int nodes) { table_.SetPeers(Nodes(nodes), "node1000", Wall::now()); }
  // A good result. A test changes one part.
  reachability::BurstResult Well() {
    reachability::BurstResult burst;
    burst.answered.assign(kPaths, reachability::PeerTable::kPerPath);
    burst.large_sent = burst.large_answered = true;
    burst.sent = burst.all_answered = kPaths * reachability::PeerTable::kPerPath + 1;
    heard_ += burst.sent;
    burst.heard = heard_;
    burst.peer_was_heard = true;
    return burst;
  }
  static reachability::BurstResult Nothing(bool heard) {
    reachability::BurstResult burst;
    burst.answered.assign(kPaths, 0);
    burst.large_sent = true;
    burst.sent = kPaths * reachability::PeerTable::kPerPath + 1;
    burst.peer_was_heard = heard;
    return burst;
  }
  reachability::PeerState After(const reachability::BurstResult& burst) {
    (void)table_.AddResult(0, burst, Wall::now());
    return table_.At(0).state;
  }

  reachability::PeerTable table_;
  std::mt19937_64 random_{7};
  std::uint32_t heard_ = 0;
};

TEST_F(PeerTableTest, IsReachableAfterOneBurstAndSilentAfterTwo) {
  Begin(2);
  EXPECT_EQ(table_.At(0).state, reachability::PeerState::kUnknown);
  EXPECT_EQ(After(Well()), reachability::PeerState::kReachable);
  EXPECT_EQ(After(Nothing(false)), reachability::PeerState::kReachable) << "a single bad moment";
  EXPECT_EQ(After(Nothing(false)), reachability::PeerState::kSilent);
  EXPECT_EQ(After(Well()), reachability::PeerState::kSilent) << "a single good one";
  EXPECT_EQ(After(Well()), reachability::PeerState::kReachable);
  EXPECT_EQ(table_.At(0).because, "");
}

TEST_F(PeerTableTest, TellsOfRdmaThatIsLostWhereUdpPasses) {
  Begin(2);
  const auto with_rdma = [&](std::uint32_t answered) {
    reachability::BurstResult burst = Well();
    burst.rdma_sent = 4;
    burst.rdma_answered = answered;
    return burst;
  };
  EXPECT_EQ(After(with_rdma(4)), reachability::PeerState::kReachable);
  EXPECT_EQ(After(with_rdma(1)), reachability::PeerState::kReachable)
      << "of one path of four UDP tells better";
  EXPECT_EQ(After(with_rdma(0)), reachability::PeerState::kReachable) << "a single bad moment";
  EXPECT_EQ(After(with_rdma(0)), reachability::PeerState::kNoRdma);
  EXPECT_NE(table_.At(0).because.find("none of 8 datagrams"), std::string::npos) << table_.At(0).because;
  EXPECT_EQ(table_.At(0).rdma_sent, 8U);
  EXPECT_EQ(table_.At(0).rdma_answered, 0U);
  EXPECT_EQ(After(Well()), reachability::PeerState::kNoRdma);
  EXPECT_EQ(After(Well()), reachability::PeerState::kReachable) << "neither asked nor missed";
}

TEST_F(PeerTableTest, TellsTheWayThatIsLost) {
  Begin(2);
  After(Nothing(true));
  EXPECT_EQ(After(Nothing(true)), reachability::PeerState::kOneWay);
  // Half the probes arrive, and each of those gets an answer.
  After(Well());
  After(Well());
  const auto half = [&] {
    reachability::BurstResult burst = Nothing(true);
    burst.answered.assign(kPaths, 1);
    burst.large_answered = true;
    burst.all_answered = 9;
    heard_ += 9;
    burst.heard = heard_;
    return burst;
  };
  After(half());
  EXPECT_EQ(After(half()), reachability::PeerState::kLossy);
  EXPECT_NEAR(table_.At(0).lost_out, 8.0 / 17, 0.01);
  EXPECT_DOUBLE_EQ(table_.At(0).lost_in, 0);
  EXPECT_EQ(table_.At(0).because, "16 of 32 lost: 47 % on the way there, 0 % on the way back");
}

TEST_F(PeerTableTest, TellsAnswersThatAreLost) {
  Begin(2);
  const auto half = [&] {
    reachability::BurstResult burst = Nothing(true);
    burst.answered.assign(kPaths, 1);
    burst.large_answered = true;
    burst.all_answered = 9;
    heard_ += burst.sent;
    burst.heard = heard_;
    return burst;
  };
  After(half());
  EXPECT_EQ(After(half()), reachability::PeerState::kLossy);
  EXPECT_DOUBLE_EQ(table_.At(0).lost_out, 0);
  EXPECT_NEAR(table_.At(0).lost_in, 8.0 / 17, 0.01);
}

TEST_F(PeerTableTest, APeerThatCountsAnewLosesNothing) {
  Begin(2);
  After(Well());
  heard_ = 0;
  After(Well());
  EXPECT_DOUBLE_EQ(table_.At(0).lost_out, 0);
  EXPECT_EQ(table_.At(0).state, reachability::PeerState::kReachable);
}

TEST_F(PeerTableTest, FindsTheMtuThatPasses) {
  Begin(2);
  const auto hole = [&] {
    reachability::BurstResult burst = Well();
    burst.large_answered = false;
    burst.passed = 1500;
    return burst;
  };
  After(hole());
  EXPECT_EQ(After(hole()), reachability::PeerState::kMtu);
  EXPECT_EQ(table_.At(0).mtu, 1500);
  EXPECT_TRUE(table_.LostLarge(0));
  After(Well());
  EXPECT_EQ(After(Well()), reachability::PeerState::kReachable);
  EXPECT_FALSE(table_.At(0).mtu);
}

TEST_F(PeerTableTest, TellsABrokenPathFromLoss) {
  Begin(2);
  const auto path = [&] {
    reachability::BurstResult burst = Well();
    burst.answered[3] = burst.answered[5] = 0;
    return burst;
  };
  After(path());
  EXPECT_EQ(After(path()), reachability::PeerState::kPaths);
  EXPECT_EQ(table_.At(0).bad_paths, 2U);
  // Different ports each time indicate loss.
  reachability::BurstResult other = Well();
  other.answered[0] = other.answered[1] = other.answered[2] = 0;
  EXPECT_EQ(After(other), reachability::PeerState::kLossy);
  EXPECT_EQ(table_.At(0).bad_paths, 0U);
}

TEST_F(PeerTableTest, OneLostPacketIsNothing) {
  Begin(2);
  reachability::BurstResult burst = Well();
  burst.answered[0] = 1;
  After(burst);
  burst = Well();
  burst.answered[7] = 1;
  EXPECT_EQ(After(burst), reachability::PeerState::kReachable);
}

TEST_F(PeerTableTest, AllTakeTurns) {
  Begin(101);
  ASSERT_EQ(table_.size(), 100U);
  std::set<std::size_t> seen;
  for (int round = 0; round < 25; ++round) {
    const auto chosen = table_.Choose(4, random_);
    ASSERT_EQ(chosen.size(), 4U);
    seen.insert(chosen.begin(), chosen.end());
  }
  EXPECT_EQ(seen.size(), 100U) << "nobody twice before all were";
}

TEST_F(PeerTableTest, ThoseThatAreNotWellComeInEveryRound) {
  Begin(51);
  for (const std::size_t peer : {3U, 30U}) {
    (void)table_.AddResult(peer, Nothing(false), Wall::now());
    (void)table_.AddResult(peer, Nothing(false), Wall::now());
  }
  (void)table_.AddResult(8, Nothing(false), Wall::now());  // not judged yet
  for (int round = 0; round < 20; ++round) {
    const auto chosen = table_.Choose(2, random_);
    EXPECT_EQ(chosen.size(), 5U);
    for (const std::size_t peer : {3U, 8U, 30U})
      EXPECT_EQ(std::count(chosen.begin(), chosen.end(), peer), 1) << peer;
  }
}

TEST_F(PeerTableTest, ManyThatAreNotWellDoNotMakeAFlood) {
  Begin(101);
  for (std::size_t peer = 0; peer < 100; ++peer) {
    (void)table_.AddResult(peer, Nothing(false), Wall::now());
    (void)table_.AddResult(peer, Nothing(false), Wall::now());
  }
  std::set<std::size_t> seen;
  for (int round = 0; round < 13; ++round) {
    const auto chosen = table_.Choose(4, random_);
    EXPECT_LE(chosen.size(), reachability::PeerTable::kSuspects);
    seen.insert(chosen.begin(), chosen.end());
  }
  EXPECT_EQ(seen.size(), 100U) << "they take turns, too";
}

TEST_F(PeerTableTest, KeepsThoseThatStay) {
  Begin(3);
  After(Well());
  const std::string kept = table_.At(0).node;
  auto nodes = Nodes(5);
  table_.SetPeers(nodes, "node1000", Wall::now());
  EXPECT_EQ(table_.size(), 4U);
  EXPECT_EQ(table_.At(0).node, kept);
  EXPECT_EQ(table_.At(0).state, reachability::PeerState::kReachable);
  nodes[kept] = IpAddress::V4(0x0a6400fe);
  table_.SetPeers(nodes, "node1000", Wall::now());
  EXPECT_EQ(table_.At(0).state, reachability::PeerState::kUnknown) << "another address is another endpoint";
}

}  // namespace
}  // namespace railhead::testing
