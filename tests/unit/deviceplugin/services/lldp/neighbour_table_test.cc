// Who stays, who is forgotten, and when.
#include <gtest/gtest.h>

#include "deviceplugin/services/lldp/lldp_report.h"
#include "tests/unit/deviceplugin/services/lldp/support.h"

namespace railhead::testing {
namespace {

constexpr const char* kPf = "0000:43:00.0";
constexpr const char* kPf1 = "0000:83:00.0";

lldp::NeighbourTable::Time At(int seconds) {
  return {lldp::NeighbourTable::Clock::time_point(std::chrono::seconds(1000 + seconds)), Wall(seconds)};
}

class NeighbourTableTest : public ::testing::Test {
 protected:
  // The leaf and its port of each that is known, the neighbour first.
  std::string Known(const char* device = kPf) {
    std::string text;
    for (const lldp::HeardNeighbour& heard : table_.Of(device))
      text += (text.empty() ? "" : ",") + heard.neighbour.Leaf() + "/" + heard.neighbour.Port();
    return text;
  }
  void Hear(const std::string& leaf, int seconds, int ttl = 120) {
    table_.Hear(kPf, Neighbour(leaf, "swp1", ttl), At(seconds));
  }
  lldp::NeighbourTable table_;
};

TEST_F(NeighbourTableTest, HoldsForItsTimeToLive) {
  EXPECT_EQ(Known(), "");
  Hear("leaf0", 0);
  EXPECT_EQ(Known(), "leaf0/swp1");
  table_.Tend(kPf, true, At(119));
  EXPECT_EQ(Known(), "leaf0/swp1");
  Hear("leaf0", 119);
  table_.Tend(kPf, true, At(238));
  EXPECT_EQ(Known(), "leaf0/swp1");
  EXPECT_EQ(table_.Of(kPf)[0].heard, Wall(119));
  table_.Tend(kPf, true, At(239));
  EXPECT_EQ(Known(), "");
}

TEST_F(NeighbourTableTest, OfEachPfByItself) {
  Hear("leaf0", 0);
  table_.Hear(kPf1, Neighbour("leaf1"), At(0));
  EXPECT_EQ(Known(kPf1), "leaf1/swp1");
  table_.KeepOnly({kPf1});
  EXPECT_EQ(Known(), "");
  EXPECT_EQ(Known(kPf1), "leaf1/swp1");
}

TEST_F(NeighbourTableTest, TheTimeStandsStillWhileNothingCanBeHeard) {
  Hear("leaf0", 0);
  for (int second = 100; second < 100'000; second += 1000) table_.Tend(kPf, false, At(second));
  EXPECT_EQ(Known(), "leaf0/swp1") << "a dead rail keeps the name of its leaf";
  table_.Tend(kPf, true, At(99'219));
  EXPECT_EQ(Known(), "leaf0/swp1");
  table_.Tend(kPf, true, At(99'220));
  EXPECT_EQ(Known(), "");
}

TEST_F(NeighbourTableTest, AnotherCableIsSeenAtOnce) {
  Hear("leaf0", 0);
  table_.Tend(kPf, false, At(10));
  table_.Tend(kPf, true, At(15));
  EXPECT_EQ(Known(), "leaf0/swp1");
  Hear("leaf1", 16);
  EXPECT_EQ(Known(), "leaf1/swp1");
}

TEST_F(NeighbourTableTest, TheFirstStaysAndOthersAreListed) {
  Hear("leaf0", 0);
  Hear("stranger", 1, 65535);
  EXPECT_EQ(Known(), "leaf0/swp1,stranger/swp1");
  for (int i = 0; i < 10; ++i) Hear("more" + std::to_string(i), 2);
  EXPECT_EQ(table_.Of(kPf).size(), lldp::NeighbourTable::kMost);
  Hear("leaf0", 100);
  table_.Tend(kPf, true, At(130));
  EXPECT_EQ(Known(), "leaf0/swp1,stranger/swp1");
  table_.Tend(kPf, true, At(220));
  EXPECT_EQ(Known(), "stranger/swp1");
  table_.Tend(kPf, true, At(3601));
  EXPECT_EQ(Known(), "") << "nobody holds for longer than an hour";
}

TEST_F(NeighbourTableTest, APortIsAnotherNeighbour) {
  Hear("leaf0", 0);
  table_.Hear(kPf, Neighbour("leaf0", "swp2"), At(1));
  EXPECT_EQ(Known(), "leaf0/swp1,leaf0/swp2");
}

TEST_F(NeighbourTableTest, WhatIsSaidAnewReplacesWhatWasSaid) {
  Hear("leaf0", 0);
  LldpNeighbour renamed = Neighbour("leaf0");
  renamed.system_name = "leaf0.dc1";
  table_.Hear(kPf, renamed, At(1));
  EXPECT_EQ(Known(), "leaf0.dc1/swp1");
}

TEST_F(NeighbourTableTest, AGoodbyeIsKeptForAMinute) {
  Hear("leaf0", 0);
  Hear("leaf0", 10, 0);
  table_.Tend(kPf, true, At(69));
  EXPECT_EQ(Known(), "leaf0/swp1");
  Hear("nobody", 20, 0);
  EXPECT_EQ(Known(), "leaf0/swp1") << "who was not there cannot go";
  table_.Tend(kPf, true, At(70));
  EXPECT_EQ(Known(), "");
  // Its port goes dark meanwhile.
  Hear("leaf0", 100);
  Hear("leaf0", 110, 0);
  table_.Tend(kPf, false, At(150));
  table_.Tend(kPf, false, At(1500));
  EXPECT_EQ(Known(), "leaf0/swp1");
  // And who is there instead is heard at once.
  Hear("leaf0", 1501);
  Hear("leaf0", 1510, 0);
  Hear("leaf1", 1511);
  EXPECT_EQ(Known(), "leaf1/swp1");
}

TEST_F(NeighbourTableTest, WhatIsRestoredHoldsUntilItShouldHaveBeenHeard) {
  table_.Restore(kPf, {Neighbour("leaf0"), Wall(-5000)}, At(0));
  EXPECT_EQ(table_.Of(kPf)[0].heard, Wall(-5000));
  table_.Tend(kPf, true, At(119));
  EXPECT_EQ(Known(), "leaf0/swp1") << "nobody listened meanwhile";
  table_.Tend(kPf, true, At(120));
  EXPECT_EQ(Known(), "");
  table_.Restore(kPf, {Neighbour("leaf0"), Wall(0)}, At(200));
  Hear("leaf1", 201);
  EXPECT_EQ(Known(), "leaf1/swp1");
}

}  // namespace
}  // namespace railhead::testing
