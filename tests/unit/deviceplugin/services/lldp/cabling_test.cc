// Cables that are where they belong, that are not, and that changed places.
#include <gtest/gtest.h>

#include "deviceplugin/services/lldp/node_labels.h"
#include "tests/unit/deviceplugin/services/lldp/support.h"

namespace railhead::testing {
namespace {

std::vector<lldp::RailLeaf> Judged(std::vector<lldp::RailLeaf> rails) {
  JudgeCabling(rails);
  return rails;
}

TEST(CablingTest, Patterns) {
  EXPECT_TRUE(lldp::MatchesLeaf({"leaf-1"}, "leaf-1"));
  EXPECT_TRUE(lldp::MatchesLeaf({"x", "su?-leaf-1*"}, "su7-leaf-1.dc.example"));
  EXPECT_TRUE(lldp::MatchesLeaf({"leaf[0-3]"}, "leaf3"));
  EXPECT_FALSE(lldp::MatchesLeaf({"leaf[0-3]"}, "leaf4"));
  EXPECT_FALSE(lldp::MatchesLeaf({"leaf-1"}, "LEAF-1"));
  EXPECT_FALSE(lldp::MatchesLeaf({"leaf-1"}, "leaf-12"));
  EXPECT_FALSE(lldp::MatchesLeaf({}, "leaf-1"));
}

TEST(CablingTest, RightWrongUncheckedUnknown) {
  const auto rails =
      Judged({RailOn("rail0", "leaf0", {"leaf0"}), RailOn("rail1", "leaf9", {"leaf1", "other*"}),
              RailOn("rail2", "leaf2"), RailOn("rail3", "", {"leaf3"})});
  EXPECT_EQ(rails[0].cabling, lldp::Cabling::kRight);
  EXPECT_EQ(rails[0].because, "");
  EXPECT_EQ(rails[1].cabling, lldp::Cabling::kWrong);
  EXPECT_EQ(rails[1].because, "expected: leaf1, other*");
  EXPECT_EQ(rails[2].cabling, lldp::Cabling::kUnchecked);
  EXPECT_EQ(rails[3].cabling, lldp::Cabling::kUnknown);
}

TEST(CablingTest, TwoThatChangedPlaces) {
  const auto rails = Judged({RailOn("rail0", "leaf1", {"leaf0"}), RailOn("rail1", "leaf0", {"leaf1"}),
                             RailOn("rail2", "leaf2", {"leaf2"})});
  EXPECT_EQ(rails[0].because, "swapped with rail1");
  EXPECT_EQ(rails[1].because, "swapped with rail0");
  EXPECT_EQ(rails[2].cabling, lldp::Cabling::kRight);
}

TEST(CablingTest, OneInThePlaceOfAnother) {
  const auto rails = Judged({RailOn("rail0", "leaf1", {"leaf0"}), RailOn("rail1", "leaf2", {"leaf1"}),
                             RailOn("rail2", "leaf2", {"leaf2"})});
  EXPECT_EQ(rails[0].because, "this is where rail1 belongs");
  EXPECT_EQ(rails[1].because, "this is where rail2 belongs");
  EXPECT_EQ(rails[2].cabling, lldp::Cabling::kRight);
}

// In a ring of three no two are swapped.
TEST(CablingTest, ThreeInARing) {
  const auto rails = Judged({RailOn("rail0", "leaf1", {"leaf0"}), RailOn("rail1", "leaf2", {"leaf1"}),
                             RailOn("rail2", "leaf0", {"leaf2"})});
  EXPECT_EQ(rails[0].because, "this is where rail1 belongs");
  EXPECT_EQ(rails[2].because, "this is where rail0 belongs");
}

TEST(CablingTest, WhyNothingIsHeardStays) {
  std::vector<lldp::RailLeaf> rails = {RailOn("rail0", ""), RailOn("rail1", "leaf1")};
  rails[0].because = rails[1].because = "no carrier";
  JudgeCabling(rails);
  EXPECT_EQ(rails[0].because, "no carrier");
  EXPECT_EQ(rails[1].because, "");
}

TEST(CablingTest, ASwitchWithoutANameIsItsChassis) {
  lldp::RailLeaf rail = RailOn("rail0", "", {"02:00:*"});
  LldpNeighbour nameless = Neighbour("");
  nameless.chassis = "02:00:00:00:00:aa";
  rail.neighbour = lldp::HeardNeighbour{nameless, Wall(0)};
  EXPECT_EQ(Judged({rail})[0].cabling, lldp::Cabling::kRight);
}

}  // namespace
}  // namespace railhead::testing
