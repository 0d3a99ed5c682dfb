// The metrics that the collector gathers from NICs, and the pods that it assigns them to. On a fake kernel,
// with the test's own counters.
#include "deviceplugin/services/nic_metrics/collector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/services/nic_metrics/counter_source.h"
#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "deviceplugin/services/nic_metrics/priority_counters.h"
#include "tests/support/daemon/reconciler_fixture.h"

namespace railhead::testing {
namespace {

struct Wire {
  std::map<std::string, PfTraffic> links;  // by network device, wherever it is
  std::map<std::uint32_t, NamedCounters> rdma;
  std::map<std::string, std::map<std::string, std::uint64_t>> driver;
  std::set<std::string> broken;     // network devices that cannot be read
  std::vector<std::string> opened;  // namespaces
};

class FakeCounters final : public nic_metrics::CounterSource {
 public:
  explicit FakeCounters(Wire& wire) : wire_(wire) {}

  Result<std::optional<PfTraffic>> Link(const std::string& netdev) override {
    if (wire_.broken.contains(netdev)) return Fail(ErrorCode::kIo, "no answer about " + netdev);
    const auto found = wire_.links.find(netdev);
    return found == wire_.links.end() ? std::nullopt : std::optional(found->second);
  }
  Result<std::optional<NamedCounters>> Rdma(std::uint32_t index) override {
    const auto found = wire_.rdma.find(index);
    return found == wire_.rdma.end() ? std::nullopt : std::optional(found->second);
  }
  Result<std::map<std::string, std::uint64_t>> Driver(const std::string& netdev,
                                                      const std::vector<std::string>& names) override {
    std::map<std::string, std::uint64_t> known;
    for (const auto& [name, value] : wire_.driver[netdev]) {
      if (std::find(names.begin(), names.end(), name) != names.end()) known.emplace(name, value);
    }
    return known;
  }

 private:
  Wire& wire_;
};

PfTraffic Counted(std::uint64_t rx_bytes, bool carrier = true) {
  PfTraffic link;
  link.traffic.rx_bytes = rx_bytes;
  link.carrier = carrier;
  return link;
}

class CollectorTest : public ReconcilerFixture {
 protected:
  void SetUp() override {
    permissions_ = R"(,"devices":"any")";  // kubelet has given nothing to anybody
    ReconcilerFixture::SetUp();
    ASSERT_NO_FATAL_FAILURE(advertisement_.pools = Pools());
    for (const char* pf : {"pf0", "pf1", "pf2"}) wire_.links[pf] = Counted(1000);
  }

  std::vector<std::shared_ptr<const resources::ResourcePool>> Pools() {
    const auto fabric = ReadFabric(sysfs_.root());
    EXPECT_TRUE(fabric && *fabric);
    const auto inventory = Discover(sysfs_.root(), inventory::HostNetwork{});
    EXPECT_TRUE(inventory) << Describe(inventory.error());
    const auto resources = resources::ResourcesOfFabric(**fabric, **inventory);
    EXPECT_TRUE(resources) << Describe(resources.error());
    return BuildPools(resources->specs, **inventory);
  }
  nic_metrics::NicReport Collect() { return collector_.Collect(advertisement_); }
  // The test fails when it does not exist.
  static const nic_metrics::NicSample& Find(const nic_metrics::NicReport& report, const std::string& device) {
    static const nic_metrics::NicSample kNone;
    const auto found = std::find_if(report.nics.begin(), report.nics.end(),
                                    [&](const nic_metrics::NicSample& nic) { return nic.device == device; });
    if (found != report.nics.end()) return *found;
    ADD_FAILURE() << device << " is not told of";
    return kNone;
  }
  void Attach() {
    Call call = AllRails();
    call.args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=jobs;K8S_POD_NAME=worker-3";
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
  }

  Wire wire_;
  Advertisement advertisement_;
  nic_metrics::NicCollector collector_{
      sysfs_.root(), kernel_, [this](const NetNs& ns) -> Result<std::unique_ptr<nic_metrics::CounterSource>> {
        wire_.opened.push_back(ns.path());
        return std::make_unique<FakeCounters>(wire_);
      }};
};

TEST_F(CollectorTest, ThePortsOfPoolsAndNothingThatNoPodHas) {
  const nic_metrics::NicReport report = Collect();
  EXPECT_TRUE(report.problems.empty());
  ASSERT_EQ(report.nics.size(), 3U);
  const nic_metrics::NicSample& port = Find(report, "0000:83:00.0");
  EXPECT_EQ(port.pf, "pf1");
  EXPECT_EQ(port.rail, "rail1");
  EXPECT_EQ(port.vf, std::nullopt);
  EXPECT_FALSE(port.owner);
  EXPECT_EQ(port.rdma_device, "mlx5_1");
  ASSERT_TRUE(port.traffic);
  EXPECT_EQ(port.traffic->rx_bytes, 1000U);
  EXPECT_TRUE(port.carrier);
  EXPECT_EQ(wire_.opened.size(), 1U) << "the host's namespace alone";
  EXPECT_EQ(Collect().nics.size(), 3U);
  EXPECT_EQ(wire_.opened.size(), 1U) << "and that once";
}

TEST_F(CollectorTest, WhatAPodHasIsSaidToBeThePods) {
  Attach();
  wire_.links["rail0"] = Counted(11);
  wire_.links["rail1"] = Counted(22);
  wire_.links["rail2"] = Counted(33, false);
  const nic_metrics::NicReport report = Collect();
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.nics.size(), 6U);
  const nic_metrics::NicSample& vf = Find(report, Bdf(1));
  ASSERT_TRUE(vf.owner);
  EXPECT_EQ(vf.owner->pod_namespace, "jobs");
  EXPECT_EQ(vf.owner->pod, "worker-3");
  EXPECT_EQ(vf.owner->interface, "rail1");
  EXPECT_EQ(vf.owner->attachment, (AttachmentKey{"rails", "c1", "net1"}));
  EXPECT_TRUE(vf.owner->nccl_config);
  EXPECT_EQ(vf.pf, "pf1");
  EXPECT_EQ(vf.vf, 0);
  EXPECT_EQ(vf.rail, "rail1");
  ASSERT_TRUE(vf.traffic);
  EXPECT_EQ(vf.traffic->rx_bytes, 22U);
  EXPECT_TRUE(vf.carrier);
  EXPECT_FALSE(Find(report, Bdf(2)).carrier);
  EXPECT_EQ(vf.by_pf, std::nullopt) << "igb and its like: the PF's driver does not count for its VFs";
}

TEST_F(CollectorTest, WhatThePfCountsForItsVfs) {
  Attach();
  wire_.links["pf1"].vfs.resize(3);
  for (int i = 0; i < 3; ++i) wire_.links["pf1"].vfs[static_cast<std::size_t>(i)].vf = i;
  wire_.links["pf1"].vfs[2].traffic.tx_packets = 5;  // another VF is busy: this driver counts
  const nic_metrics::NicReport report = Collect();
  ASSERT_TRUE(Find(report, Bdf(1)).by_pf);
  EXPECT_EQ(Find(report, Bdf(1)).by_pf->tx_packets, 0U);
  EXPECT_EQ(Find(report, Bdf(0)).by_pf, std::nullopt);
}

TEST_F(CollectorTest, RdmaCountersOfThePodAlsoInExclusiveMode) {
  for (const bool exclusive : {false, true}) {
    SCOPED_TRACE(exclusive);
    if (exclusive) {
      ASSERT_TRUE(Del(AllRails()));
      Remove("/run/railhead/rdma-mode");
      kernel_.SetRdmaMode(RdmaNetnsMode::kExclusive);
    }
    Attach();
    const FakeRdma* device = kernel_.state().Rdma("mlx5_pf1v0");
    ASSERT_NE(device, nullptr);
    wire_.rdma[device->index] = {{"out_of_sequence", 17}};
    const nic_metrics::NicSample vf = Find(Collect(), Bdf(1));
    EXPECT_EQ(vf.rdma_device, "mlx5_pf1v0");
    EXPECT_TRUE(vf.rdma_seen);
    EXPECT_TRUE(vf.rdma_active);
    EXPECT_EQ(vf.rdma, (NamedCounters{{"out_of_sequence", 17}}));
  }
}

TEST_F(CollectorTest, WhatCannotBeReadIsAProblemAndTheRestIsThere) {
  Attach();
  wire_.links["rail0"] = Counted(11);
  wire_.broken = {"pf0"};
  nic_metrics::NicReport report = Collect();
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].message.find("pf0"), std::string::npos) << report.problems[0].message;
  EXPECT_EQ(Find(report, "0000:43:00.0").traffic, std::nullopt);
  EXPECT_TRUE(Find(report, "0000:83:00.0").traffic);
  EXPECT_TRUE(Find(report, Bdf(0)).traffic);
}

TEST_F(CollectorTest, APodWhoseNamespaceIsGoneIsNoProblem) {
  Attach();
  kernel_.RemoveNamespace(pod_);
  const nic_metrics::NicReport report = Collect();
  EXPECT_TRUE(report.problems.empty()) << Describe(report.problems.front());
  EXPECT_EQ(Find(report, Bdf(1)).traffic, std::nullopt);
}

TEST_F(CollectorTest, ADamagedJournalLeavesThePorts) {
  Attach();
  WriteFileAt(Path(EntryOf(AllRails())), "{");
  const nic_metrics::NicReport report = Collect();
  EXPECT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(report.nics.size(), 3U);
}

// Drivers' names of pause counters.

TEST(PauseCountersTest, OfEveryKnownDriverNamesAreDistinctAndHavePriorities) {
  for (const char* driver : {"mlx5_core", "bnxt_en", "ice", "i40e", "ixgbe"}) {
    const auto& names = nic_metrics::PriorityCounterNames(driver);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << driver;
    std::map<std::string, std::uint64_t> statistics;
    for (const std::string& name : names) statistics[name] = 1;
    const auto counts = nic_metrics::PriorityCountsOf(driver, statistics);
    EXPECT_EQ(counts.size(), names.size()) << driver;
    std::set<int> paused;
    for (const nic_metrics::PriorityCount& count : counts) {
      if (count.counter == nic_metrics::PriorityCounter::kPauseFrames && !count.transmit && count.priority)
        paused.insert(*count.priority);
    }
    EXPECT_EQ(paused.size(), 8U) << driver;
  }
}

TEST(PauseCountersTest, WhatMlx5Says) {
  const auto counts = nic_metrics::PriorityCountsOf("mlx5_core", {{"rx_prio3_pause", 7},
                                                                  {"tx_prio5_pause_duration", 1'500'000},
                                                                  {"rx_prio0_discards", 2},
                                                                  {"tx_global_pause", 4},
                                                                  {"rx_out_of_buffer", 9}});
  const auto has = [&](const nic_metrics::PriorityCount& wanted) {
    return std::find(counts.begin(), counts.end(), wanted) != counts.end();
  };
  EXPECT_EQ(counts.size(), 4U);
  EXPECT_TRUE(has({nic_metrics::PriorityCounter::kPauseFrames, false, 3, 7}));
  EXPECT_TRUE(has({nic_metrics::PriorityCounter::kPauseMicroseconds, true, 5, 1'500'000}));
  EXPECT_TRUE(has({nic_metrics::PriorityCounter::kDiscards, false, 0, 2}));
  EXPECT_TRUE(has({nic_metrics::PriorityCounter::kPauseFrames, true, std::nullopt, 4}));
}

TEST(PauseCountersTest, OfAnotherDriverNothing) {
  EXPECT_TRUE(nic_metrics::PriorityCounterNames("veth").empty());
  EXPECT_TRUE(nic_metrics::PriorityCountsOf("veth", {{"rx_prio3_pause", 7}}).empty());
}

}  // namespace
}  // namespace railhead::testing
