// The report as JSON and as railheadd's file: whatever it says is read as it was written, and nothing else is
// read.
#include "deviceplugin/services/reachability/reach_report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/support/ipam/rapidcheck.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/reachability/reach_values.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

template <typename Value>
std::optional<Value> Perhaps(Value value) {
  return *rc::gen::arbitrary<bool>() ? std::optional<Value>(std::move(value)) : std::nullopt;
}

int AnyOf(int below) {
  return *rc::gen::inRange(0, below);
}

// Any text but NUL, which no JSON of ours has; here of UTF-8's first part.
std::string AnyText() {
  return *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
}

std::string AnyName() {
  return AnyText() + "x";
}

IpAddress AnyAddress() {
  const auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(*rc::gen::arbitrary<bool>() ? 4U : 16U,
                                                                    rc::gen::arbitrary<std::uint8_t>());
  return *IpAddress::FromBytes(bytes.data(), bytes.size());
}

reachability::PeerReach AnyPeer(const std::string& node) {
  reachability::PeerReach peer;
  peer.node = node;
  peer.address = AnyAddress();
  peer.state = static_cast<reachability::PeerState>(AnyOf(8));
  peer.since = ReachWall(AnyOf(3));
  peer.because = AnyText();
  peer.sent = *rc::gen::arbitrary<std::uint32_t>();
  peer.answered = *rc::gen::arbitrary<bool>() ? peer.sent : peer.sent / 3;
  peer.lost_out = AnyOf(1001) / 1000.0;
  peer.lost_in = AnyOf(4) / 3.0;
  peer.rtt = Perhaps(std::chrono::microseconds(AnyOf(2'000'000)));
  peer.paths = *rc::gen::arbitrary<std::uint32_t>();
  peer.bad_paths = peer.paths / 2;
  peer.mtu = Perhaps(AnyOf(65536));
  peer.rdma_sent = AnyOf(3) * 4U;
  peer.rdma_answered = *rc::gen::arbitrary<bool>() ? peer.rdma_sent : peer.rdma_sent / 2;
  return peer;
}

reachability::RailReach AnyRail(const std::string& name) {
  reachability::RailReach rail;
  rail.rail = name;
  rail.device = AnyText();
  rail.pf = AnyText();
  rail.state = static_cast<reachability::ReachState>(AnyOf(4));
  rail.since = ReachWall(AnyOf(3));
  rail.probed = *rc::gen::arbitrary<bool>();
  rail.because = AnyText();
  rail.station = Perhaps(AnyAddress());
  rail.gateway =
      Perhaps(reachability::GatewayReach{AnyAddress(), *rc::gen::arbitrary<bool>(),
                                         Perhaps(MacAddress{{1, 2, 3, 4, 5, 6}}), ReachWall(AnyOf(9))});
  const int peers = AnyOf(5);
  for (int i = 0; i < peers; ++i) rail.peers.push_back(AnyPeer(AnyName() + std::to_string(i)));
  rail.probes = *rc::gen::inRange<std::uint64_t>(0, INT64_MAX);
  rail.answers = *rc::gen::inRange<std::uint64_t>(0, INT64_MAX);
  rail.stale = *rc::gen::inRange<std::uint64_t>(0, INT64_MAX);
  rail.rdma = Perhaps(*rc::gen::arbitrary<bool>() ? reachability::RdmaReach{AnyName(), "", AnyOf(256)}
                                                  : reachability::RdmaReach{"", AnyName(), 0});
  rail.rdma_probes = *rc::gen::inRange<std::uint64_t>(0, INT64_MAX);
  rail.rdma_answers = rail.rdma_probes / 2;
  return rail;
}

reachability::PodReach AnyPod(const std::string& name) {
  reachability::PodReach pod;
  pod.pod_namespace = AnyName();
  pod.pod = name;
  pod.interface = AnyName();
  pod.rail = AnyName();
  pod.device = AnyText();
  pod.state = static_cast<reachability::ReachState>(AnyOf(4));
  pod.since = ReachWall(AnyOf(9));
  pod.because = AnyText();
  pod.gateway_answers = Perhaps(*rc::gen::arbitrary<bool>());
  pod.sent = *rc::gen::arbitrary<std::uint32_t>();
  pod.answered = pod.sent / 2;
  for (int i = AnyOf(3); i > 0; --i) pod.stale.push_back(AnyAddress());
  return pod;
}

TEST(ReachReportTest, IsReadAsItWasWritten) {
  ExpectProperty([] {
    reachability::ReachReport report{AnyName(), ReachWall(AnyOf(99)), {}, {}};
    const int rails = AnyOf(3);
    for (int i = 0; i < rails; ++i) report.rails.push_back(AnyRail("rail" + std::to_string(i)));
    const int pods = AnyOf(3);
    for (int i = 0; i < pods; ++i) report.pods.push_back(AnyPod("pod" + std::to_string(i)));
    report.authentic = AnyOf(2) == 1;
    const auto read = reachability::ParseReachReport(ReachReportAsJson(report).dump(), "f");
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->authentic == report.authentic);
    RC_ASSERT(read->node == report.node);
    RC_ASSERT(read->time == report.time);
    RC_ASSERT(read->rails == report.rails);
    RC_ASSERT(read->pods == report.pods);
  });
}

TEST(ReachReportTest, WhatIsWellTakesLittle) {
  const reachability::ReachReport report = ReportOf(7, 1250, {});
  const std::string text = ReachReportAsJson(report).dump();
  EXPECT_LT(text.size() / 1249, 100U) << "bytes for each peer";
  const Json peer = Json::parse(text)["rails"][0]["peers"][0];
  EXPECT_EQ(peer, Json::parse(R"({"node":"gpu-000","address":"10.0.0.1","sent":80,"rttUs":12,"paths":8})"));
}

TEST(ReachReportTest, FindsAndCounts) {
  const reachability::ReachReport report = Cluster(4, {{{0, 2}, reachability::PeerState::kSilent}})[0];
  ASSERT_NE(report.Find("rail0"), nullptr);
  EXPECT_EQ(report.Find("rail1"), nullptr);
  EXPECT_EQ(report.Find("rail0")->Count(reachability::PeerState::kSilent), 1U);
  EXPECT_EQ(report.Find("rail0")->Count(reachability::PeerState::kReachable), 2U);
}

TEST(ReachReportTest, AsAFile) {
  const TempRoot temp;
  const auto none = reachability::ReadReachReport(temp.root());
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  // More than JsonDocument takes by itself, with a fault of its own for each.
  reachability::ReachReport report = Cluster(2, {})[0];
  report.rails[0].pf = "pf\xff";  // names of interfaces are any bytes
  const std::string long_because(400, 'x');
  for (int i = 2; i < 2500; ++i)
    report.rails[0].peers.push_back(PeerOf(NodeNumber(i), reachability::PeerState::kSilent, long_because));
  ASSERT_TRUE(WriteReachReport(temp.root(), report));
  struct stat info {};
  ASSERT_EQ(::stat(reachability::ReachReportPath(temp.root()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
  EXPECT_GT(info.st_size, 1 << 20);
  const auto read = reachability::ReadReachReport(temp.root());
  ASSERT_TRUE(read && *read) << Describe(read.error());
  EXPECT_EQ((*read)->rails[0].peers, report.rails[0].peers);
  temp.Write("/run/railhead/reach.json", "{}");
  EXPECT_FALSE(reachability::ReadReachReport(temp.root()));
}

std::string ErrorOf(const std::string& text) {
  const auto report = reachability::ParseReachReport(text, "f");
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

TEST(ReachReportTest, WhatIsNoReport) {
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

TEST(ReachReportTest, OfANewerRailheadd) {
  EXPECT_EQ(ErrorOf(WithPeer(R"(,"newer":1)")), "");
  EXPECT_EQ(ErrorOf(WithRail(R"(,"newer":{})")), "");
}

TEST(ReachReportTest, RefusalsHaveAPointer) {
  const std::string peer = "/rails/0/peers/0/";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {WithRail(R"(,"since":253402300800)"), "/rails/0/since"},
      {WithRail(R"(,"station":"10.0.0")"), "/rails/0/station: '10.0.0' is no IP address"},
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
      {WithPeer(R"(,"lostOut":1.5)"), peer + "lostOut: is no number from 0 to 1"},
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

TEST(ReachReportTest, NothingIsThereTwice) {
  EXPECT_NE(ErrorOf(WithPeer(R"(},{"node":"b","address":"10.0.0.2")")).find("another peer is called 'b'"),
            std::string::npos);
  EXPECT_NE(ErrorOf(WithRail(R"(},{"rail":"a","state":"dead")")).find("another rail is called 'a'"),
            std::string::npos);
  const std::string pod = R"("namespace":"x","pod":"p","interface":"net1","rail":"a","state":"dead")";
  EXPECT_EQ(ErrorOf(WithPod(R"(,"state":"dead")")), "");
  EXPECT_NE(ErrorOf(WithPod(R"(,"state":"dead"},{)" + pod)).find("this interface of x/p is there twice"),
            std::string::npos);
}

// Cut and changed anywhere, it is refused or read, and what was read can be written again.
TEST(ReachReportTest, WhateverIsReadIsWrittenAgain) {
  const std::string whole =
      ReachReportAsJson(Cluster(4, {{{0, 2}, reachability::PeerState::kSilent}})[0]).dump();
  ExpectProperty([&] {
    std::string text = whole;
    const auto at = static_cast<std::size_t>(AnyOf(static_cast<int>(text.size())));
    text[at] = *rc::gen::arbitrary<char>();
    if (AnyOf(4) == 0) text.resize(at);
    const auto read = reachability::ParseReachReport(text, "f");
    if (!read) return;
    const auto again = reachability::ParseReachReport(
        ReachReportAsJson(*read).dump(-1, ' ', false, Json::error_handler_t::replace), "f");
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->rails == read->rails);
  });
}

TEST(ReachReportTest, AContainerWithoutAPodIsNamedByItsId) {
  reachability::ReachReport report;
  report.node = "node0";
  reachability::PodReach pod;
  pod.pod = "1f2e";
  pod.interface = "net1";
  pod.rail = "rail0";
  report.pods = {pod};
  const auto again = reachability::ParseReachReport(ReachReportAsJson(report).dump(), "it");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->pods.at(0).Name(), "1f2e");
}

}  // namespace
}  // namespace railhead::testing
