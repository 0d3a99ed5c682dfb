// The report as JSON, as railheadd's file, and as a list of many nodes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/services/lldp/lldp_report.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/lldp/support.h"

namespace railhead::testing {
namespace {

lldp::LeafReport Whole() {
  lldp::LeafReport report{
      "gpu-001", Wall(7), {RailOn("rail0", "leaf0", {"leaf0*", "x"}), RailOn("rail1", "")}};
  lldp::RailLeaf& rail = report.rails[0];
  rail.cabling = lldp::Cabling::kWrong;
  rail.because = "swapped with rail1";
  rail.others = {"stranger swp9"};
  LldpNeighbour& neighbour = rail.neighbour->neighbour;
  neighbour.port_is_mac = true;
  neighbour.port_description = "etp1";
  neighbour.port_vlan = 100;
  neighbour.max_frame = 9216;
  report.rails[1].carrier = false;
  report.rails[1].because = "no carrier";
  return report;
}

std::string TextOf(const lldp::LeafReport& report) {
  return LeafReportAsJson(report).dump();
}

TEST(LeafReportTest, IsReadAsItWasWritten) {
  const lldp::LeafReport report = Whole();
  const auto read = lldp::ParseLeafReport(TextOf(report), "f");
  ASSERT_TRUE(read) << Describe(read.error());
  EXPECT_EQ(read->node, "gpu-001");
  EXPECT_EQ(read->time, Wall(7));
  EXPECT_EQ(read->rails, report.rails);
  EXPECT_NE(read->Find("rail1"), nullptr);
  EXPECT_EQ(read->Find("rail2"), nullptr);
}

TEST(LeafReportTest, SaysTheLeafInPlainWords) {
  const auto json = LeafReportAsJson(Whole());
  EXPECT_EQ(json["rails"][0]["leaf"], "leaf0");
  EXPECT_EQ(json["rails"][0]["port"], "etp1");
  EXPECT_EQ(json["rails"][0]["cabling"], "wrong");
  EXPECT_FALSE(json["rails"][1].contains("leaf"));
}

TEST(LeafReportTest, WhenItWasHeardIsNoDifference) {
  const lldp::LeafReport report = Whole();
  lldp::LeafReport later = report;
  later.time = Wall(100);
  later.rails[0].neighbour->heard = Wall(99);
  EXPECT_TRUE(SaysTheSame(report, later));
  later.rails[0].neighbour->neighbour.port = "swp2";
  EXPECT_FALSE(SaysTheSame(report, later));
  later = report;
  later.rails.pop_back();
  EXPECT_FALSE(SaysTheSame(report, later));
}

TEST(LeafReportTest, AsAFile) {
  const TempRoot temp;
  const auto none = lldp::ReadLeafReport(temp.root());
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  lldp::LeafReport report = Whole();
  report.rails[0].pf = "pf\xff";  // names of interfaces are any bytes
  ASSERT_TRUE(WriteLeafReport(temp.root(), report));
  struct stat info {};
  ASSERT_EQ(::stat(lldp::LeafReportPath(temp.root()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
  const auto read = lldp::ReadLeafReport(temp.root());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->rails.size(), 2U);
  temp.Write("/run/railhead/leaves.json", "{}");
  EXPECT_FALSE(lldp::ReadLeafReport(temp.root()));
}

TEST(LeafReportTest, RefusalsHaveAPointer) {
  const auto error_of = [](const std::string& text) {
    const auto report = lldp::ParseLeafReport(text, "f");
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
  EXPECT_NE(error_of(head + rail + "}," + rail + "}]}").find("/rails/1/rail: another rail is called 'a'"),
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
