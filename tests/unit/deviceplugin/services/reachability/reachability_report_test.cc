// The report as JSON and as railheadd's file: whatever it says is read as it was written, and nothing else is
// read.
#include "deviceplugin/services/reachability/reachability_report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "netns/json/record_io.h"
#include "tests/support/rapidcheck.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/reachability/reachability_values.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

int AnyOf(int below) {
  return *rc::gen::inRange(0, below);
}

// For most peers the report omits the time, since it equals the rail's. (For everything else see
// tests/unit/records_test.cc.)
TEST(ReachabilityReportTest, TimesThatAreTheRailsAreReadAsTheRails) {
  reachability::ReachabilityReport report = Cluster(4, {})[0];
  reachability::RailReachability& rail = report.rails[0];
  rail.since = ReachabilityWall(7);
  rail.peers[0].since = ReachabilityWall(7);
  rail.peers[1].since = ReachabilityWall(8);
  const auto json = ToJson(WithoutCommonTimes(report))["rails"][0]["peers"];
  EXPECT_FALSE(json[0].contains("since"));
  EXPECT_TRUE(json[1].contains("since"));
  const auto read = reachability::ParseReachabilityReport(ToJson(WithoutCommonTimes(report)).dump(), "f");
  ASSERT_TRUE(read) << Describe(read.error());
  EXPECT_EQ(read->rails, report.rails);
}

TEST(ReachabilityReportTest, WhatIsWellTakesLittle) {
  const reachability::ReachabilityReport report = ReportOf(7, 1250, {});
  const std::string text = ToJson(WithoutCommonTimes(report)).dump();
  EXPECT_LT(text.size() / 1249, 100U) << "bytes for each peer";
  const Json peer = Json::parse(text)["rails"][0]["peers"][0];
  EXPECT_EQ(peer, Json::parse(R"({"node":"gpu-000","address":"10.0.0.1","sent":80,"rttUs":12,"paths":8})"));
}

TEST(ReachabilityReportTest, FindsAndCounts) {
  const reachability::ReachabilityReport report = Cluster(4, {{{0, 2}, reachability::PeerState::kSilent}})[0];
  ASSERT_NE(report.Find("rail0"), nullptr);
  EXPECT_EQ(report.Find("rail1"), nullptr);
  EXPECT_EQ(report.Find("rail0")->Count(reachability::PeerState::kSilent), 1U);
  EXPECT_EQ(report.Find("rail0")->Count(reachability::PeerState::kReachable), 2U);
}

TEST(ReachabilityReportTest, AsAFile) {
  const TempRoot temp;
  const auto none = reachability::ReadReachabilityReport(temp.root());
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  // More than JsonDocument takes by itself, with a fault of its own for each.
  reachability::ReachabilityReport report = Cluster(2, {})[0];
  report.rails[0].pf = "pf\xff";  // names of interfaces are any bytes
  const std::string long_because(400, 'x');
  for (int i = 2; i < 2500; ++i)
    report.rails[0].peers.push_back(PeerOf(NodeNumber(i), reachability::PeerState::kSilent, long_because));
  ASSERT_TRUE(WriteReachabilityReport(temp.root(), report));
  struct stat info {};
  ASSERT_EQ(::stat(reachability::kReachabilityFile.PathIn(temp.root()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
  EXPECT_GT(info.st_size, 1 << 20);
  const auto read = reachability::ReadReachabilityReport(temp.root());
  ASSERT_TRUE(read && *read) << Describe(read.error());
  EXPECT_EQ((*read)->rails[0].peers, report.rails[0].peers);
  temp.Write("/run/railhead/reachability.json", "{}");
  EXPECT_FALSE(reachability::ReadReachabilityReport(temp.root()));
}

std::string ErrorOf(const std::string& text) {
  const auto report = reachability::ParseReachabilityReport(text, "f");
  return report ? "" : Describe(report.error());
}

std::string WithRail(const std::string& fields) {
  return R"({"version":1,"node":"n","rails":[{"rail":"a","state":"dead")" + fields + "}]}";
}

std::string WithPeer(const std::string& fields) {
  return WithRail(R"(,"peers":[{"node":"b","address":"10.0.0.1")" + fields + "}]");
}

std::string WithPod(const std::string& fields) {
  return R"({"version":1,"node":"n","pods":[{"namespace":"x","pod":"p","interface":"net1","rail":"a")" +
         fields + "}]}";
}

TEST(ReachabilityReportTest, WhatIsNoReport) {
  EXPECT_NE(ErrorOf("nonsense"), "");
  EXPECT_NE(ErrorOf("[]"), "");
  EXPECT_NE(ErrorOf(""), "");
  EXPECT_NE(ErrorOf(R"({"node":"n"})").find("/version: is required"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version":2,"node":"n"})").find("/version"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version":1})").find("/node"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version":1,"node":"n","node":"m"})").find("twice"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version":1,"node":"n","time":-1})").find("/time"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"version":1,"node":"n","rails":{}})").find("/rails"), std::string::npos);
}

TEST(ReachabilityReportTest, OfANewerRailheadd) {
  EXPECT_EQ(ErrorOf(WithPeer(R"(,"newer":1)")), "");
  EXPECT_EQ(ErrorOf(WithRail(R"(,"newer":{})")), "");
}

TEST(ReachabilityReportTest, RefusalsHaveAPointer) {
  const std::string peer = "/rails/0/peers/0/";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {WithRail(R"(,"since":253402300800)"), "/rails/0/since"},
      {WithRail(R"(,"probeAddress":"10.0.0")"), "/rails/0/probeAddress: '10.0.0' is not an IP address"},
      {WithRail(R"(,"probes":-1)"), "/rails/0/probes"},
      {WithRail(R"(,"answers":18446744073709551615)"), "/rails/0/answers"},
      {WithRail(R"(,"gateway":{"answers":true})"), "/rails/0/gateway/address: is required"},
      {WithRail(R"(,"gateway":{"address":"10.0.0.1"})"), "/rails/0/gateway/answers: is required"},
      {WithRail(R"(,"gateway":{"address":"10.0.0.1","answers":true,"mac":"02:00"})"), "/rails/0/gateway/mac"},
      {WithRail(R"(,"peers":[{"node":"b"}])"), peer + "address: is required"},
      {WithRail(R"(,"peers":[{"address":"10.0.0.1"}])"), peer + "node"},
      {WithRail(R"(,"peers":[3])"), "/rails/0/peers/0"},
      {WithPeer(R"(,"state":"odd")"), peer + "state: 'odd' is not known"},
      {WithPeer(R"(,"state":7)"), peer + "state"},
      {WithPeer(R"(,"sent":4294967296)"), peer + "sent"},
      {WithPeer(R"(,"sent":10,"answered":11)"), peer + "answered"},
      {WithPeer(R"(,"answered":1)"), peer + "answered"},
      {WithPeer(R"(,"paths":2,"badPaths":3)"), peer + "badPaths"},
      {WithPeer(R"(,"lostOut":1.5)"), peer + "lostOut: is not a number from 0 to 1"},
      {WithPeer(R"(,"lostIn":"0.5")"), peer + "lostIn"},
      {WithPeer(R"(,"rttUs":-1)"), peer + "rttUs"},
      {WithPeer(R"(,"rttUs":1.5)"), peer + "rttUs"},
      {WithPeer(R"(,"mtu":65536)"), peer + "mtu"},
      {WithPod(""), "/pods/0/state"},
      {WithPod(R"(,"state":"silent")"), "/pods/0/state: 'silent' is not known"},
      {WithPod(R"(,"state":"dead","gatewayAnswers":1)"), "/pods/0/gatewayAnswers"},
      {WithPod(R"(,"state":"dead","answered":1)"), "/pods/0/answered"}};
  for (const auto& [text, error] : refused)
    EXPECT_NE(ErrorOf(text).find(error), std::string::npos) << text << "\n" << ErrorOf(text);
}

TEST(ReachabilityReportTest, NothingIsThereTwice) {
  EXPECT_NE(
      ErrorOf(WithPeer(R"(},{"node":"b","address":"10.0.0.2")")).find("/rails/0/peers/1: 'b' is there twice"),
      std::string::npos);
  EXPECT_NE(ErrorOf(WithRail(R"(},{"rail":"a","state":"dead")")).find("/rails/1: 'a' is there twice"),
            std::string::npos);
  const std::string pod = R"("namespace":"x","pod":"p","interface":"net1","rail":"a","state":"dead")";
  EXPECT_EQ(ErrorOf(WithPod(R"(,"state":"dead")")), "");
  EXPECT_NE(ErrorOf(WithPod(R"(,"state":"dead"},{)" + pod)).find("/pods/1: 'x/p net1' is there twice"),
            std::string::npos);
}

// The text is cut or changed anywhere. It is refused, or it is read and can be written again.
TEST(ReachabilityReportTest, WhateverIsReadIsWrittenAgain) {
  const std::string whole =
      ToJson(WithoutCommonTimes(Cluster(4, {{{0, 2}, reachability::PeerState::kSilent}})[0])).dump();
  ExpectProperty([&] {
    std::string text = whole;
    const auto at = static_cast<std::size_t>(AnyOf(static_cast<int>(text.size())));
    text[at] = *rc::gen::arbitrary<char>();
    if (AnyOf(4) == 0) text.resize(at);
    const auto read = reachability::ParseReachabilityReport(text, "f");
    if (!read) return;
    const auto again = reachability::ParseReachabilityReport(
        ToJson(WithoutCommonTimes(*read)).dump(-1, ' ', false, Json::error_handler_t::replace), "f");
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->rails == read->rails);
  });
}

TEST(ReachabilityReportTest, AContainerWithoutAPodIsNamedByItsId) {
  reachability::ReachabilityReport report;
  report.node = "node0";
  reachability::PodReachability pod;
  pod.pod = "1f2e";
  pod.interface = "net1";
  pod.rail = "rail0";
  report.pods = {pod};
  const auto again = reachability::ParseReachabilityReport(ToJson(WithoutCommonTimes(report)).dump(), "it");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->pods.at(0).Name(), "1f2e");
}

}  // namespace
}  // namespace railhead::testing
