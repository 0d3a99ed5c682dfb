// On the running kernel: veth has statistics, macvlan has none.
#include <gtest/gtest.h>
#include <net/if.h>

#include "netns/sys/netdev_sysfs.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

class EthtoolStatsTest : public ::testing::Test {
 protected:
  // The test program has a namespace of its own; what it opens looks into that.
  NetNs here_ = Must(NetNs::Current());
  NetNs other_ = MakeNetns();
  EthtoolStats stats_ = Must(EthtoolStats::Open());
};

TEST_F(EthtoolStatsTest, ByName) {
  const int index = AddVeth(here_, "stats0", here_, "stats1");
  const int peer = static_cast<int>(::if_nametoindex("stats1"));
  const auto values = Must(stats_.Read("stats0", {"peer_ifindex", "no_such_thing"}));
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values.at("peer_ifindex"), static_cast<std::uint64_t>(peer));
  // The place is known now; the answer is the same.
  EXPECT_EQ(Must(stats_.Read("stats0", {"peer_ifindex", "no_such_thing"})), values);
  EXPECT_TRUE(Must(stats_.Read("stats0", {"no_such_thing"})).empty());
  EXPECT_EQ(Must(stats_.Read("stats1", {"peer_ifindex"})).at("peer_ifindex"),
            static_cast<std::uint64_t>(index));
  DeleteLink(here_, index);
  EXPECT_TRUE(Must(stats_.Read("stats0", {"peer_ifindex"})).empty()) << "gone";
}

TEST_F(EthtoolStatsTest, WithoutStatistics) {
  EXPECT_TRUE(Must(stats_.Read("lo", {"peer_ifindex"})).empty());
  EXPECT_TRUE(Must(stats_.Read("nothere", {"peer_ifindex"})).empty());
  EXPECT_TRUE(Must(stats_.Read("", {"peer_ifindex"})).empty());
  EXPECT_TRUE(Must(stats_.Read(std::string(40, 'x'), {"peer_ifindex"})).empty());
}

// The socket stays where it was opened: what is in another namespace is not there.
TEST_F(EthtoolStatsTest, OtherNamespaces) {
  AddVeth(other_, "away0", other_, "away1");
  EXPECT_TRUE(Must(stats_.Read("away0", {"peer_ifindex"})).empty());
}

}  // namespace
}  // namespace railhead::testing
