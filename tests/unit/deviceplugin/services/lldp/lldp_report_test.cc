// What a node knows of its leaf switches.
#include "deviceplugin/services/lldp/lldp_report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/services/lldp/neighbor_table.h"
#include "netns/json/record_io.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/lldp/support.h"

namespace railhead::testing {
namespace {

// Which neighbors stay, which are forgotten, and when.

constexpr const char* kPf = "0000:43:00.0";
constexpr const char* kPf1 = "0000:83:00.0";

lldp::NeighborTable::Time At(int seconds) {
  return {lldp::NeighborTable::Clock::time_point(std::chrono::seconds(1000 + seconds)), Wall(seconds)};
}

class NeighborTableTest : public ::testing::Test {
 protected:
  // Switch and port of each neighbor, the first one first.
  std::string Known(const char* device = kPf) {
    std::string text;
    for (const lldp::HeardNeighbor& heard : table_.Of(device))
      text += (text.empty() ? "" : ",") + heard.neighbor.SwitchName() + "/" + heard.neighbor.Port();
    return text;
  }
  void Hear(const std::string& leaf, int seconds, int ttl = 120) {
    table_.Add(kPf, Neighbor(leaf, "swp1", ttl), At(seconds));
  }
  lldp::NeighborTable table_;
};

TEST_F(NeighborTableTest, HoldsForItsTimeToLive) {
  EXPECT_EQ(Known(), "");
  Hear("leaf0", 0);
  EXPECT_EQ(Known(), "leaf0/swp1");
  table_.Refresh(kPf, true, At(119));
  EXPECT_EQ(Known(), "leaf0/swp1");
  Hear("leaf0", 119);
  table_.Refresh(kPf, true, At(238));
  EXPECT_EQ(Known(), "leaf0/swp1");
  EXPECT_EQ(table_.Of(kPf)[0].heard, Wall(119));
  table_.Refresh(kPf, true, At(239));
  EXPECT_EQ(Known(), "");
}

TEST_F(NeighborTableTest, OfEachPfByItself) {
  Hear("leaf0", 0);
  table_.Add(kPf1, Neighbor("leaf1"), At(0));
  EXPECT_EQ(Known(kPf1), "leaf1/swp1");
  table_.KeepOnly({kPf1});
  EXPECT_EQ(Known(), "");
  EXPECT_EQ(Known(kPf1), "leaf1/swp1");
}

TEST_F(NeighborTableTest, TheTimeStandsStillWhileNothingCanBeHeard) {
  Hear("leaf0", 0);
  for (int second = 100; second < 100'000; second += 1000) table_.Refresh(kPf, false, At(second));
  EXPECT_EQ(Known(), "leaf0/swp1") << "a rail without carrier keeps its switch";
  table_.Refresh(kPf, true, At(99'219));
  EXPECT_EQ(Known(), "leaf0/swp1");
  table_.Refresh(kPf, true, At(99'220));
  EXPECT_EQ(Known(), "");
}

TEST_F(NeighborTableTest, AnotherCableIsSeenAtOnce) {
  Hear("leaf0", 0);
  table_.Refresh(kPf, false, At(10));
  table_.Refresh(kPf, true, At(15));
  EXPECT_EQ(Known(), "leaf0/swp1");
  Hear("leaf1", 16);
  EXPECT_EQ(Known(), "leaf1/swp1");
}

TEST_F(NeighborTableTest, TheFirstStaysAndOthersAreListed) {
  Hear("leaf0", 0);
  Hear("stranger", 1, 65535);
  EXPECT_EQ(Known(), "leaf0/swp1,stranger/swp1");
  for (int i = 0; i < 10; ++i) Hear("more" + std::to_string(i), 2);
  EXPECT_EQ(table_.Of(kPf).size(), lldp::NeighborTable::kMost);
  Hear("leaf0", 100);
  table_.Refresh(kPf, true, At(130));
  EXPECT_EQ(Known(), "leaf0/swp1,stranger/swp1");
  table_.Refresh(kPf, true, At(220));
  EXPECT_EQ(Known(), "stranger/swp1");
  table_.Refresh(kPf, true, At(3601));
  EXPECT_EQ(Known(), "") << "nobody holds for longer than an hour";
}

TEST_F(NeighborTableTest, APortIsAnotherNeighbor) {
  Hear("leaf0", 0);
  table_.Add(kPf, Neighbor("leaf0", "swp2"), At(1));
  EXPECT_EQ(Known(), "leaf0/swp1,leaf0/swp2");
}

TEST_F(NeighborTableTest, WhatIsSaidAnewReplacesWhatWasSaid) {
  Hear("leaf0", 0);
  LldpNeighbor renamed = Neighbor("leaf0");
  renamed.system_name = "leaf0.dc1";
  table_.Add(kPf, renamed, At(1));
  EXPECT_EQ(Known(), "leaf0.dc1/swp1");
}

TEST_F(NeighborTableTest, AGoodbyeIsKeptForAMinute) {
  Hear("leaf0", 0);
  Hear("leaf0", 10, 0);
  table_.Refresh(kPf, true, At(69));
  EXPECT_EQ(Known(), "leaf0/swp1");
  Hear("nobody", 20, 0);
  EXPECT_EQ(Known(), "leaf0/swp1") << "who was not there cannot go";
  table_.Refresh(kPf, true, At(70));
  EXPECT_EQ(Known(), "");
  // The port loses its carrier before the minute ends.
  Hear("leaf0", 100);
  Hear("leaf0", 110, 0);
  table_.Refresh(kPf, false, At(150));
  table_.Refresh(kPf, false, At(1500));
  EXPECT_EQ(Known(), "leaf0/swp1");
  // And who is there instead is heard at once.
  Hear("leaf0", 1501);
  Hear("leaf0", 1510, 0);
  Hear("leaf1", 1511);
  EXPECT_EQ(Known(), "leaf1/swp1");
}

TEST_F(NeighborTableTest, WhatIsRestoredHoldsUntilItShouldHaveBeenHeard) {
  table_.Restore(kPf, {Neighbor("leaf0"), Wall(-5000)}, At(0));
  EXPECT_EQ(table_.Of(kPf)[0].heard, Wall(-5000));
  table_.Refresh(kPf, true, At(119));
  EXPECT_EQ(Known(), "leaf0/swp1") << "nobody listened meanwhile";
  table_.Refresh(kPf, true, At(120));
  EXPECT_EQ(Known(), "");
  table_.Restore(kPf, {Neighbor("leaf0"), Wall(0)}, At(200));
  Hear("leaf1", 201);
  EXPECT_EQ(Known(), "leaf1/swp1");
}

// The report as JSON, as railheadd's file, and as a list of many nodes.

lldp::LldpReport Whole() {
  lldp::LldpReport report{
      "gpu-001", Wall(7), {RailOn("rail0", "leaf0", {"leaf0*", "x"}), RailOn("rail1", "")}};
  lldp::RailNeighbor& rail = report.rails[0];
  rail.cabling = lldp::Cabling::kWrong;
  rail.because = "swapped with rail1";
  rail.others = {"stranger swp9"};
  LldpNeighbor& neighbor = rail.neighbor->neighbor;
  neighbor.port_is_mac = true;
  neighbor.port_description = "etp1";
  neighbor.port_vlan = 100;
  neighbor.vlans = {100, 201};
  neighbor.max_frame = 9216;
  report.rails[1].carrier = false;
  report.rails[1].because = "no carrier";
  return report;
}

TEST(LldpReportTest, FindsRailsByName) {
  EXPECT_NE(Whole().Find("rail1"), nullptr);
  EXPECT_EQ(Whole().Find("rail2"), nullptr);
}

TEST(LldpReportTest, NamesTheSwitch) {
  const auto json = ToJson(Whole());
  EXPECT_EQ(json["rails"][0]["switch"], "leaf0");
  EXPECT_EQ(json["rails"][0]["port"], "etp1");
  EXPECT_EQ(json["rails"][0]["cabling"], "wrong");
  EXPECT_FALSE(json["rails"][1].contains("switch"));
}

TEST(LldpReportTest, WhenItWasHeardIsNoDifference) {
  const lldp::LldpReport report = Whole();
  lldp::LldpReport later = report;
  later.time = Wall(100);
  later.rails[0].neighbor->heard = Wall(99);
  EXPECT_TRUE(SaysTheSame(report, later));
  later.rails[0].neighbor->neighbor.port = "swp2";
  EXPECT_FALSE(SaysTheSame(report, later));
  later = report;
  later.rails.pop_back();
  EXPECT_FALSE(SaysTheSame(report, later));
}

TEST(LldpReportTest, AsAFile) {
  const TempRoot temp;
  const auto none = lldp::kLldpFile.Read(temp.root());
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  lldp::LldpReport report = Whole();
  report.rails[0].pf = "pf\xff";  // names of interfaces are any bytes
  ASSERT_TRUE(lldp::kLldpFile.Write(temp.root(), report));
  struct stat info {};
  ASSERT_EQ(::stat(lldp::kLldpFile.PathIn(temp.root()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
  const auto read = lldp::kLldpFile.Read(temp.root());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->rails.size(), 2U);
  temp.Write("/run/railhead/lldp.json", "{}");
  EXPECT_FALSE(lldp::kLldpFile.Read(temp.root()));
}

TEST(LldpReportTest, RefusalsHaveAPointer) {
  const auto error_of = [](const std::string& text) {
    const auto report = ParseRecord<lldp::LldpReport>(text, "f");
    return report ? "" : Describe(report.error());
  };
  const std::string head = R"({"version":1,"node":"n","rails":[)";
  const std::string rail = R"({"rail":"a","cabling":"right")";
  EXPECT_EQ(error_of(head + rail + "}]}"), "");
  EXPECT_EQ(error_of(head + rail + R"(,"newer":1}],"newer":{}})"), "") << "of a newer railheadd";
  EXPECT_NE(error_of("nonsense"), "");
  EXPECT_NE(error_of("[]"), "");
  EXPECT_NE(error_of(R"({"node":"n"})").find("/version: is required"), std::string::npos);
  EXPECT_NE(error_of(R"({"version":2,"node":"n"})").find("/version"), std::string::npos);
  EXPECT_NE(error_of(R"({"version":1})").find("/node"), std::string::npos);
  EXPECT_NE(error_of(head + rail + "}," + rail + "}]}").find("/rails/1: 'a' is there twice"),
            std::string::npos);
  EXPECT_NE(error_of(head + R"({"rail":"a","cabling":"odd"}]})").find("/rails/0/cabling: 'odd' is not known"),
            std::string::npos);
  EXPECT_NE(error_of(head + rail + R"(,"lldp":{"portId":"p"}}]})").find("/rails/0/lldp/chassisId"),
            std::string::npos);
  EXPECT_NE(error_of(head + rail + R"(,"lldp":{"chassisId":"c","portId":"p","ttl":-1}}]})").find("/ttl"),
            std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
