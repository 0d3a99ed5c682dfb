// `railctl lldp` and `railctl labels` as processes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/process.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/lldp/support.h"

namespace railhead::testing {
namespace {

using std::chrono::seconds;
using Wall = std::chrono::system_clock;

class LldpCommandTest : public ::testing::Test {
 protected:
  ProcessOutput Run(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, input);
  }
  static lldp::LldpReport Report(const std::string& node, const std::string& leaf0,
                                 const std::string& leaf1) {
    lldp::LldpReport report{node, Wall::now(), {RailOn("rail0", leaf0), RailOn("rail1", leaf1)}};
    for (lldp::RailNeighbor& rail : report.rails) {
      if (!rail.neighbor) continue;
      rail.neighbor->heard = Wall::now() - seconds(600);
      rail.cabling = lldp::Cabling::kUnchecked;
    }
    return report;
  }
  void Save(const lldp::LldpReport& report) { ASSERT_TRUE(lldp::kLldpFile.Write(temp_.root(), report)); }

  TempRoot temp_;
};

TEST_F(LldpCommandTest, ATable) {
  lldp::LldpReport report = Report("n", "leaf0", "leaf1.dc");
  report.rails[0].cabling = lldp::Cabling::kRight;
  report.rails[1].carrier = false;
  report.rails.push_back(RailOn("rail2", ""));
  report.rails[2].pf = "";
  report.rails[2].because = "this node has no PF for it";
  Save(report);
  const auto output = Run({"lldp"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out,
            "RAIL   PF   SWITCH    PORT  AGE  CABLING\n"
            "rail0  pf0  leaf0     swp1  10m  right\n"
            "rail1  pf1  leaf1.dc  swp1  10m  unchecked (no carrier)\n"
            "rail2  -    -         -     -    unknown: this node has no PF for it\n");
  EXPECT_EQ(Run({"lldp", "--strict"}).status, 1) << "one is unknown";
}

TEST_F(LldpCommandTest, WrongIsStatusOne) {
  lldp::LldpReport report = Report("n", "leaf1", "leaf0");
  report.rails[0].cabling = lldp::Cabling::kWrong;
  report.rails[0].because = "swapped with rail1";
  report.rails[0].others = {"stranger swp3"};
  Save(report);
  const auto output = Run({"lldp"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.out.find("wrong: swapped with rail1; also heard: stranger swp3\n"), std::string::npos)
      << output.out;
  const auto json = nlohmann::json::parse(Run({"lldp", "-o", "json"}).out);
  EXPECT_EQ(json["rails"][0]["cabling"], "wrong");
  EXPECT_EQ(json["rails"][0]["switch"], "leaf1");
}

TEST_F(LldpCommandTest, WithoutRailheadd) {
  auto output = Run({"lldp"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("is it running?"), std::string::npos) << output.err;
  lldp::LldpReport report = Report("n", "leaf0", "leaf1");
  report.time = Wall::now() - seconds(3600);
  Save(report);
  output = Run({"lldp"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("railheadd does not run"), std::string::npos) << output.err;
  EXPECT_NE(output.out.find("leaf0"), std::string::npos) << "it may be true all the same";
}

TEST_F(LldpCommandTest, Labels) {
  EXPECT_EQ(Run({"labels"}).status, 1) << "there is no fabric";
  temp_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0"}]})");
  const auto output = Run({"labels"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_NE(output.out.find("railhead.io/rails-complete=false\n"), std::string::npos) << output.out;
  EXPECT_EQ(nlohmann::json::parse(Run({"labels", "-o", "json"}).out)["railhead.io/network"], "none");
  temp_.Write("/etc/railhead/fabric.json", "{");
  EXPECT_EQ(Run({"labels"}).status, 3);
}

}  // namespace
}  // namespace railhead::testing
