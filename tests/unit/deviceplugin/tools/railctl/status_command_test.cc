// `railctl status` as a process, on a node that is fine but for what a test spoils.
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/support/http/http_server.h"
#include "deviceplugin/tools/railctl/node_summary.h"
#include "tests/support/eventually.h"
#include "tests/support/service/running.h"
#include "tests/unit/deviceplugin/tools/railctl/pods_node.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kReady = R"({"status": "ready", "registered": 1, "standby": 0})";

// railheadd's /readyz.
class ReadyPage {
 public:
  ReadyPage() {
    server_ = RunService<http::HttpServer>(
        http::HttpServer::Options{.name = "http", .address = http::ParseHttpAddress("127.0.0.1:0").value()},
        [this](const http::HttpRequest&) {
          const std::lock_guard lock(mutex_);
          return http::HttpResponse{status_, "application/json", body_};
        },
        [this](const Result<std::string>& address) {
          const std::lock_guard lock(mutex_);
          if (address) address_ = *address;
        });
  }
  void Say(int status, std::string body) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    body_ = std::move(body);
  }
  std::string address() {
    const std::lock_guard lock(mutex_);
    return address_;
  }

 private:
  int status_ = 200;
  std::string body_ = kReady;
  std::mutex mutex_;
  std::string address_;
  Running<http::HttpServer> server_;  // last: its thread uses the others
};

class StatusCommandTest : public PodsNode {
 protected:
  void SetUp() override {
    PodsNode::SetUp();
    ASSERT_TRUE(Eventually([&] { return !page_.address().empty(); }));
  }
  ProcessOutput Status(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"status", "--http-address", page_.address()});
    return Run(more);
  }
  // The finding of a check.
  Json Finding(const std::string& check) {
    const Json json = Json::parse(Status({"-o", "json"}).out, nullptr, false);
    for (const Json& finding : json["findings"]) {
      if (finding["check"] == check) return finding;
    }
    return {};
  }
  std::string Severity(const std::string& check) { return Finding(check).value("severity", "absent"); }

  ReadyPage page_;
};

TEST_F(StatusCommandTest, AGoodNodeIsFine) {
  AttachTwoPods();
  const auto output = Status();
  EXPECT_EQ(output.status, 0) << output.out << output.err;
  EXPECT_EQ(output.out.rfind("OK: node gpu-001, 2 rails, 8 devices: 6 free, 2 in use by 2 pods\nfine: ", 0),
            0U)
      << output.out;
}

TEST_F(StatusCommandTest, WhatIsWorstComesFirst) {
  ASSERT_TRUE(health::AddDrain(root_, {kPf1, "rail1", "cable", std::chrono::system_clock::now()}));
  page_.Say(503, R"({"status": "not ready", "registered": 0, "standby": 0,
      "missing": [{"resource": "railhead.io/roce", "because": "kubelet refused"}]})");
  const auto output = Status();
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(output.out.rfind("BROKEN: node gpu-001", 0), 0U) << output.out;
  const auto broken = output.out.find(
      "broken    railheadd: railhead.io/roce is not registered with kubelet: kubelet refused\n");
  const auto drained = output.out.find("degraded  drained: rail1 is drained: cable\n");
  ASSERT_NE(broken, std::string::npos) << output.out;
  ASSERT_NE(drained, std::string::npos) << output.out;
  EXPECT_LT(broken, drained);
  EXPECT_NE(output.out.find("next: railctl undrain rail1\n"), std::string::npos) << output.out;
}

TEST_F(StatusCommandTest, OneFaultDegrades) {
  WriteHealth({vfs0_[0]});
  const auto output = Status();
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(output.out.rfind("DEGRADED: ", 0), 0U) << output.out;
  EXPECT_EQ(Severity("health"), "degraded");
  EXPECT_EQ(Severity("rails"), "fine");
}

TEST_F(StatusCommandTest, RailsWithoutCarrier) {
  sysfs_.Write("/sys/class/net/pf0/carrier", "0\n");
  EXPECT_EQ(Severity("rails"), "degraded");
  sysfs_.Write("/sys/class/net/pf1/carrier", "0\n");
  EXPECT_EQ(Severity("rails"), "broken") << "no rail is left";
}

TEST_F(StatusCommandTest, WhatCannotBeReadIsUnknownOrWorse) {
  sysfs_.Remove("/run/railhead/health.json");
  EXPECT_EQ(Severity("health"), "unknown");
  sysfs_.Write("/var/lib/railhead/drains.json", "{");
  EXPECT_EQ(Severity("drained"), "unknown");
  sysfs_.Write("/run/railhead/lldp.json", "{");
  EXPECT_EQ(Severity("cabling"), "unknown");
  sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{");
  EXPECT_EQ(Severity("devices"), "unknown");
  EXPECT_EQ(Status().status, 1);
}

TEST_F(StatusCommandTest, AFabricThatIsInvalid) {
  sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [{"name": "r", "vlan": 9999}]})");
  const Json finding = Finding("fabric");
  EXPECT_EQ(finding["severity"], "broken");
  EXPECT_NE(finding["details"].dump().find("/rails/0/vlan"), std::string::npos) << finding;
  EXPECT_EQ(finding["next"], "railctl config check /etc/railhead/fabric.json");
}

TEST_F(StatusCommandTest, AChangedFabricThatIsNotInForce) {
  sysfs_.Write("/run/railhead/fabric-follow.json",
               R"({"version": 1, "file": "/config/fabric.json", "refused": [],
      "pending": [{"kind": "rail", "name": "rail1", "change": "changed", "rails": ["rail1"], "pods": ["a/b", "a/c"]}]})");
  Json finding = Finding("fabric");
  EXPECT_EQ(finding["severity"], "degraded");
  EXPECT_EQ(finding["details"], Json::array({"a change waits: rail1 is in use by 2 pods"}));
  EXPECT_EQ(finding["next"], "railctl drain rail1");
  sysfs_.Write("/run/railhead/fabric-follow.json", R"({"version": 1, "file": "/config/fabric.json",
      "refused": ["/config/fabric.json: /rails/0/vlan: is wrong"], "pending": []})");
  finding = Finding("fabric");
  EXPECT_EQ(finding["severity"], "broken");
  EXPECT_NE(finding["details"].dump().find("/rails/0/vlan"), std::string::npos) << finding;
  sysfs_.Write("/run/railhead/fabric-follow.json", "{");
  EXPECT_EQ(Severity("fabric"), "unknown");
}

TEST_F(StatusCommandTest, ANodeWithoutAFabric) {
  sysfs_.Remove("/etc/railhead/fabric.json");
  const Json finding = Finding("fabric");
  EXPECT_EQ(finding["severity"], "broken");
  EXPECT_NE(finding["next"].get<std::string>().find("railctl install config"), std::string::npos) << finding;
  EXPECT_NE(Finding("devices")["next"].get<std::string>().find("railctl install config"), std::string::npos);
  sysfs_.Write("/etc/pcidp/config.json", R"({"resourceList": []})");
  EXPECT_EQ(Severity("fabric"), "fine");
}

TEST_F(StatusCommandTest, ADaemonThatDoesNotRun) {
  const auto stopped = [&] {
    const Json json = Json::parse(Run({"status", "--http-address", "", "-o", "json"}).out, nullptr, false);
    for (const Json& finding : json["findings"]) {
      if (finding["check"] == "railheadd") return finding["severity"].get<std::string>();
    }
    return std::string("absent");
  };
  EXPECT_EQ(stopped(), "unknown") << "its files are new: it runs";
  lldp::LldpReport old;
  old.node = "gpu-001";
  old.time = std::chrono::system_clock::now() - std::chrono::hours(1);
  ASSERT_TRUE(lldp::kLldpFile.Write(root_, old));
  EXPECT_EQ(stopped(), "broken");
}

TEST_F(StatusCommandTest, AnAddThatNeverEnded) {
  JournalEntry entry = Entry("dddd4444", "worker-2", {vfs1_[1], kPf1, 1, "rail1", "10.101.0.8"});
  entry.phase = Phase::kPlanned;
  Attach(entry);
  const Json finding = Finding("journal");
  EXPECT_EQ(finding["severity"], "degraded");
  EXPECT_NE(
      finding["details"][0].get<std::string>().find("pod train/worker-2, container dddd4444: its ADD began"),
      std::string::npos)
      << finding;
  EXPECT_EQ(finding["next"], "railctl why train/worker-2");
}

TEST_F(StatusCommandTest, AnEntryThatCannotBeRead) {
  sysfs_.Write("/run/railhead/attachments/c1/rails@net1.json", "{");
  const Json finding = Finding("journal");
  EXPECT_EQ(finding["severity"], "degraded");
  EXPECT_NE(finding["next"].get<std::string>().find("railctl journal restore"), std::string::npos) << finding;
}

TEST(SummaryTest, ALesserFaultIsKeptBehindAWorseOne) {
  railctl::SummaryFinding finding{"x", railctl::Severity::kFine, {}, ""};
  finding.Add(railctl::Severity::kFine, "fine");
  finding.Add(railctl::Severity::kDegraded, "bad", "this");
  finding.Add(railctl::Severity::kBroken, "worse", "that");
  finding.Add(railctl::Severity::kFine, "fine");
  EXPECT_EQ(finding.severity, railctl::Severity::kBroken);
  EXPECT_EQ(finding.details, (std::vector<std::string>{"worse", "bad"}));
  EXPECT_EQ(finding.next, "that");
}

// A rail with a range of ten addresses.
TEST(SummaryTest, RangesThatAreNearlyExhausted) {
  const auto fabric = ParseFabric(R"({"version": 1, "rails": [
      {"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeRanges": {"n": ["10.100.0.1-10.100.0.10"]}}]})",
                                  "fabric.json");
  ASSERT_TRUE(fabric) << Describe(fabric.error());
  railctl::AddressReport report;
  const auto take = [&](int last, ipam::AddressState state) {
    railctl::KnownAddress known;
    known.record.pool = "10.100.0.0/24";
    known.record.address = *IpAddress::Parse("10.100.0." + std::to_string(last));
    known.record.state = state;
    report.addresses.push_back(known);
  };
  for (int last = 1; last <= 8; ++last) take(last, ipam::AddressState::kHeld);
  EXPECT_EQ(CheckRanges(*fabric, "n", std::nullopt, report).severity, railctl::Severity::kFine);
  take(9, ipam::AddressState::kCoolingDown);
  const auto nearly = CheckRanges(*fabric, "n", std::nullopt, report);
  EXPECT_EQ(nearly.severity, railctl::Severity::kDegraded);
  EXPECT_EQ(nearly.details.at(0), "rail0: 9 of 10 addresses are taken, 1 of them cool down");
  EXPECT_EQ(nearly.next, "railctl ipam list --pool 10.100.0.0/24");
  report.addresses.back().record.state = ipam::AddressState::kHeld;
  take(10, ipam::AddressState::kHeld);
  EXPECT_EQ(CheckRanges(*fabric, "n", std::nullopt, report).severity, railctl::Severity::kBroken);
  EXPECT_EQ(CheckRanges(*fabric, "other", std::nullopt, report).severity, railctl::Severity::kFine)
      << "it has no range here";
}

TEST(SummaryTest, TheOnlyAddressOfANetworkIsNoShortage) {
  const auto fabric =
      ParseFabric(R"({"version": 1, "nodes": {"n": 1}, "rails": [{"name": "rail0", "pf": "pf0",
      "subnet": "10.100.0.0/24", "nodeSubnet": 31, "gateway": "other"}]})",
                  "fabric.json");
  ASSERT_TRUE(fabric) << Describe(fabric.error());
  railctl::KnownAddress known;
  known.record.pool = "10.100.0.2/31";
  known.record.address = *IpAddress::Parse("10.100.0.3");
  known.record.state = ipam::AddressState::kHeld;
  EXPECT_EQ(railctl::CheckRanges(*fabric, "n", 1, {.addresses = {known}}).severity, railctl::Severity::kFine);
}

TEST(SummaryTest, PodsWithoutRoutesToSubnetsThatCameLater) {
  const auto fabric = [](const std::string& fields) {
    auto read =
        ParseFabric(R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24",
        "nodeSubnet": 31, "gateway": "other")" +
                        fields + "}]}",
                    "fabric.json");
    EXPECT_TRUE(read) << Describe(read.error());
    return read ? *read : Fabric();
  };
  JournalEntry entry;
  entry.key.container_id = "c1";
  AttachedDevice device;
  device.rail = "rail0";
  device.addressing.addresses = {*IpPrefix::Parse("10.100.0.3/31")};
  Route route;
  route.destination = *IpPrefix::Parse("10.100.0.0/24");
  device.addressing.routes = {route};
  entry.devices = {device};
  EXPECT_EQ(railctl::CheckRoutes(fabric(""), {entry}).severity, railctl::Severity::kFine);
  const auto later =
      railctl::CheckRoutes(fabric(R"(, "fabricSubnets": ["10.100.0.0/24", "10.102.0.0/24"])"), {entry});
  EXPECT_EQ(later.severity, railctl::Severity::kDegraded);
  EXPECT_EQ(later.details, std::vector<std::string>{
                               "rail0: no route to 10.102.0.0/24 in 1 pod that started before the fabric "
                               "had it: container c1"});
  EXPECT_EQ(railctl::CheckRoutes(fabric(R"(, "routes": ["10.0.0.0/8"])"), {entry}).severity,
            railctl::Severity::kFine)
      << "as written: a change of it waits for the pod";
}

TEST(SummaryTest, ARangeThatIsExcluded) {
  const auto fabric =
      ParseFabric(R"({"version": 1, "nodes": {"n": 1}, "rails": [{"name": "rail0", "pf": "pf0",
      "subnet": "10.100.0.0/24", "nodeBlock": 28, "exclude": ["10.100.0.10-10.100.0.40"]}]})",
                  "fabric.json");
  ASSERT_TRUE(fabric) << Describe(fabric.error());
  EXPECT_EQ(railctl::CheckRanges(*fabric, "n", 1, railctl::AddressReport()).severity,
            railctl::Severity::kBroken);
  EXPECT_EQ(railctl::CheckRanges(*fabric, "n", 2, railctl::AddressReport()).severity,
            railctl::Severity::kFine);
}

TEST(SummaryTest, DamageAndLeaks) {
  railctl::AddressReport report;
  EXPECT_EQ(railctl::CheckAddresses(std::optional(report)).severity, railctl::Severity::kFine);
  railctl::KnownAddress leaked;
  leaked.leak = "its DEL never came";
  report.addresses = {leaked};
  EXPECT_EQ(railctl::CheckAddresses(std::optional(report)).severity, railctl::Severity::kDegraded);
  report.damage = {"two owners"};
  EXPECT_EQ(railctl::CheckAddresses(std::optional(report)).severity, railctl::Severity::kBroken);
  EXPECT_EQ(railctl::CheckAddresses(Fail(ErrorCode::kIo, "no")).severity, railctl::Severity::kBroken);
}

}  // namespace
}  // namespace railhead::testing
