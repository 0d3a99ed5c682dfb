#include "deviceplugin/services/health/probe.h"

#include <gtest/gtest.h>

#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/unit/deviceplugin/services/health/fake_driver_source.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

constexpr const char* kPfPath = "/sys/bus/pci/devices/0000:43:00.0";
constexpr const char* kCounters = "/sys/class/infiniband/mlx5_0/ports/1/counters/";

class ProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sysfs_.AddPf({.address = kPf, .netdev = "pf0", .rdma = "mlx5_0"});
    const auto vfs = sysfs_.AddVfs(kPf, 2, {.rdma = "mlx5_v{n}"});
    ASSERT_EQ(vfs, (std::vector<std::string>{kVf, kVf2}));
  }

  health::Observation Read(const health::HealthSubject& subject, bool counters = false) {
    auto seen = probe_.Read(subject, rules_, counters, &problems_, &problems_);
    EXPECT_TRUE(seen) << (seen ? "" : Describe(seen.error()));
    return seen ? *std::move(seen) : health::Observation{};
  }
  void SetLink(const std::string& netdev, const std::string& carrier, const std::string& flags = "0x1003") {
    sysfs_.Write("/sys/class/net/" + netdev + "/carrier", carrier + "\n");
    sysfs_.Write("/sys/class/net/" + netdev + "/flags", flags + "\n");
  }

  FakeSysfs sysfs_;
  FakeDriverSource source_;
  health::HealthRules rules_;
  health::HealthProbe probe_{sysfs_.root(), &source_};
  std::vector<Error> problems_;
};

TEST_F(ProbeTest, APf) {
  sysfs_.Write("/sys/class/net/pf0/operstate", "up\n");
  const health::Observation seen = Read(Pf());
  EXPECT_TRUE(seen.present && seen.bound);
  ASSERT_TRUE(seen.link);
  EXPECT_EQ(seen.link->netdev, "pf0");
  EXPECT_TRUE(seen.link->admin_up && seen.link->carrier);
  EXPECT_EQ(seen.link->operstate, "up");
  ASSERT_TRUE(seen.port);
  EXPECT_EQ(seen.port->ibdev, "mlx5_0");
  EXPECT_EQ(seen.port->state, PortState::kActive);
  EXPECT_EQ(seen.vf_count, 2);
  EXPECT_TRUE(seen.counters.empty()) << "not asked for";
  EXPECT_TRUE(problems_.empty());
}

TEST_F(ProbeTest, Links) {
  SetLink("pf0", "0");
  EXPECT_TRUE(Read(Pf()).link->admin_up);
  EXPECT_FALSE(Read(Pf()).link->carrier);
  SetLink("pf0", "0", "0x1002");
  EXPECT_FALSE(Read(Pf()).link->admin_up);
  SetLink("pf0v0", "1");
  EXPECT_TRUE(Read(Vf()).link->carrier);
  EXPECT_EQ(Read(Vf()).port->ibdev, "mlx5_v0");
  SetLink("pf0v0", "0", "0x1002");
  EXPECT_FALSE(Read(Vf()).link->admin_up);
  EXPECT_EQ(Read(Vf()).port, std::nullopt) << "of a VF that is down nobody would judge it";
}

TEST_F(ProbeTest, RenamedDevicesAreFound) {
  ASSERT_TRUE(Read(Pf()).link);
  const std::string device = "/sys/devices/pci0000:40/0000:40:03.0/0000:43:00.0";
  sysfs_.Remove(device + "/net/pf0");
  sysfs_.Write(device + "/net/rail0/carrier", "1\n");
  sysfs_.Remove(device + "/infiniband/mlx5_0");
  sysfs_.Remove("/sys/class/infiniband/mlx5_0");
  sysfs_.Write(device + "/infiniband/rocep67/ports/1/state", "1: DOWN\n");
  sysfs_.Link("/sys/class/infiniband/rocep67", device + "/infiniband/rocep67");
  const health::Observation seen = Read(Pf());
  ASSERT_TRUE(seen.link && seen.port);
  EXPECT_EQ(seen.link->netdev, "rail0");
  EXPECT_EQ(seen.port->ibdev, "rocep67");
  EXPECT_EQ(seen.port->state, PortState::kDown);
}

// A port of the PF's switch, as its driver shows it, is not the PF.
TEST_F(ProbeTest, RepresentorsAreNotThePf) {
  const std::string net = "/sys/devices/pci0000:40/0000:40:03.0/0000:43:00.0/net/";
  sysfs_.Write(net + "a_rep/carrier", "0\n");
  sysfs_.Write(net + "a_rep/phys_port_name", "pf0vf0\n");
  sysfs_.Write(net + "pf0/phys_port_name", "p0\n");
  EXPECT_EQ(Read(Pf()).link->netdev, "pf0");
}

TEST_F(ProbeTest, InAPod) {
  sysfs_.MoveToPod(kVf);
  health::Observation seen = Read(Vf(kVf, true));
  EXPECT_TRUE(seen.present && seen.bound);
  EXPECT_FALSE(seen.link || seen.port);
  // The VF is moving: not yet in use, or no longer.
  seen = Read(Vf());
  EXPECT_TRUE(seen.present && seen.bound);
  EXPECT_FALSE(seen.link || seen.port);
}

TEST_F(ProbeTest, UnboundAndGone) {
  ASSERT_TRUE(Read(Vf()).link);
  sysfs_.Unbind(kVf);
  for (const bool in_use : {false, true}) {
    const health::Observation seen = Read(Vf(kVf, in_use));
    EXPECT_TRUE(seen.present);
    EXPECT_FALSE(seen.bound || seen.link);
  }
  sysfs_.Remove(std::string("/sys/bus/pci/devices/") + kVf);
  for (const bool in_use : {false, true}) {
    const health::Observation seen = Read(Vf(kVf, in_use));
    EXPECT_FALSE(seen.present || seen.bound);
  }
}

TEST_F(ProbeTest, Subfunctions) {
  const std::string device = "/sys/devices/pci0000:40/0000:40:03.0/0000:43:00.0/mlx5_core.sf.2";
  sysfs_.Write(device + "/net/sf2/carrier", "0\n");
  sysfs_.Write(device + "/sfnum", "2\n");
  sysfs_.Write("/sys/bus/auxiliary/drivers/mlx5_core.sf/bind", "");
  sysfs_.Link(device + "/driver", "/sys/bus/auxiliary/drivers/mlx5_core.sf");
  sysfs_.Link("/sys/bus/auxiliary/devices/mlx5_core.sf.2", device);
  health::Observation seen = Read(Vf("mlx5_core.sf.2"));
  EXPECT_TRUE(seen.present && seen.bound);
  ASSERT_TRUE(seen.link);
  EXPECT_EQ(seen.link->netdev, "sf2");
  sysfs_.Remove("/sys/bus/auxiliary/devices/mlx5_core.sf.2");
  sysfs_.Remove(device);
  seen = Read(Vf("mlx5_core.sf.2"));
  EXPECT_FALSE(seen.present);
}

TEST_F(ProbeTest, Counters) {
  sysfs_.Write(std::string(kPfPath) + "/aer_dev_fatal", "Undefined 0\nDLP 2\nTOTAL_ERR_FATAL 2\n");
  sysfs_.Write(std::string(kPfPath) + "/aer_dev_nonfatal", "no total\n");
  sysfs_.Write(std::string(kCounters) + "symbol_error", "41\n");
  sysfs_.Write(std::string(kCounters) + "link_downed", "N/A (no PMA)\n");
  sysfs_.Write("/sys/class/net/pf0/carrier_down_count", "3\n");
  source_.statistics["pf0"] = {{"tx_pause_storm_error_events", 9}, {"rx_packets", 1}};
  rules_.Of(health::HealthRule::kPauseStorm).enabled = true;
  const health::Observation seen = Read(Pf(), true);
  ASSERT_EQ(seen.counters.size(), 4U);
  const auto is = [&](std::size_t i, health::HealthRule rule, const std::string& name, std::uint64_t value) {
    return seen.counters[i].rule == rule && seen.counters[i].name == name && seen.counters[i].value == value;
  };
  EXPECT_TRUE(is(0, health::HealthRule::kAer, "aer_dev_fatal", 2));
  EXPECT_TRUE(is(1, health::HealthRule::kErrorRate, "symbol_error", 41));
  EXPECT_TRUE(is(2, health::HealthRule::kErrorRate, "carrier_down_count", 3));
  EXPECT_TRUE(is(3, health::HealthRule::kPauseStorm, "tx_pause_storm_error_events", 9));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(ProbeTest, CountersByConfiguration) {
  rules_.Of(health::HealthRule::kErrorRate).counters = {{"rnr_nak_retry_err", 0, std::chrono::seconds(60)},
                                                        {"rx_crc_errors", 0, std::chrono::seconds(60)}};
  sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/rnr_nak_retry_err", "5\n");
  sysfs_.Write("/sys/class/net/pf0/statistics/rx_crc_errors", "6\n");
  const health::Observation seen = Read(Pf(), true);
  ASSERT_EQ(seen.counters.size(), 2U);
  EXPECT_EQ(seen.counters[0].value, 5U);
  EXPECT_EQ(seen.counters[1].value, 6U);
}

TEST_F(ProbeTest, WhatIsOffIsNotRead) {
  for (health::RuleSettings& settings : rules_.rules) settings.enabled = false;
  sysfs_.Write(std::string(kPfPath) + "/aer_dev_fatal", "TOTAL_ERR_FATAL 2\n");
  sysfs_.Write(std::string(kCounters) + "symbol_error", "41\n");
  source_.statistics["pf0"] = {{"tx_pause_storm_error_events", 9}};
  source_.failed[kPf] = {"fw_fatal"};
  const health::Observation seen = Read(Pf(), true);
  EXPECT_TRUE(seen.counters.empty() && seen.failed_reporters.empty());
  EXPECT_FALSE(seen.vf_count || seen.port);
  EXPECT_EQ(source_.calls, 0);
}

TEST_F(ProbeTest, Reporters) {
  source_.failed[kPf] = {"fw", "fw_fatal"};
  EXPECT_EQ(Read(Pf()).failed_reporters, std::vector<std::string>{"fw_fatal"}) << "those that are asked for";
  EXPECT_TRUE(Read(Vf()).failed_reporters.empty());
}

// bnxt_en reports the loss of its firmware by the name that mlx5_core has for lesser errors.
TEST_F(ProbeTest, ReportersOfOneDriver) {
  constexpr const char* kBroadcom = "0000:c3:00.0";
  sysfs_.AddPf({.address = kBroadcom, .netdev = "pf2", .driver = "bnxt_en"});
  source_.failed = {{kPf, {"fw", "crash"}}, {kBroadcom, {"fw", "crash"}}};
  health::HealthSubject broadcom = Pf();
  broadcom.id = broadcom.pf_id = kBroadcom;
  broadcom.pf_name = "pf2";
  EXPECT_TRUE(Read(Pf()).failed_reporters.empty());
  EXPECT_EQ(Read(broadcom).failed_reporters, std::vector<std::string>{"fw"});
  rules_.reporters = {"mlx5_core:crash", "bnxt_en:"};
  EXPECT_EQ(Read(Pf()).failed_reporters, std::vector<std::string>{"crash"});
  EXPECT_TRUE(Read(broadcom).failed_reporters.empty());
}

// One unreadable attribute does not hide the others.
TEST_F(ProbeTest, ProblemsOfDriversAreReported) {
  source_.error = Error{ErrorCode::kPermission, "not allowed", "", 0};
  SetLink("pf0", "0");
  rules_.Of(health::HealthRule::kPauseStorm).enabled = true;
  const health::Observation seen = Read(Pf(), true);
  EXPECT_FALSE(seen.link->carrier);
  ASSERT_EQ(problems_.size(), 2U);
  EXPECT_EQ(problems_[0].message, "reading devlink health of 0000:43:00.0: not allowed");
  EXPECT_EQ(problems_[1].message, "reading ethtool statistics of 0000:43:00.0: not allowed");
}

TEST_F(ProbeTest, WithoutSource) {
  health::HealthProbe probe(sysfs_.root(), nullptr);
  EXPECT_TRUE(probe.Read(Pf(), rules_, true, &problems_, &problems_));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(ProbeTest, WhatIsNoPortStateIsAnError) {
  sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/state", "purple\n");
  const auto seen = probe_.Read(Pf(), rules_, false, &problems_, &problems_);
  ASSERT_FALSE(seen);
  EXPECT_NE(seen.error().message.find("purple"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
