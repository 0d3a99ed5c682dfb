// The health watch on real PFs and VFs (igb): what sysfs, ethtool and devlink report when links, drivers and
// VFs go away.
#include <gtest/gtest.h>

#include <algorithm>

#include "deviceplugin/services/health/driver_source.h"
#include "deviceplugin/services/health/probe.h"
#include "deviceplugin/services/health/watch.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/nl/devlink_health.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "tests/support/eventually.h"
#include "tests/support/netns/guest_fixture.h"

namespace railhead::testing {
namespace {

// No hysteresis, so that each check counts. The monitor's tests cover hysteresis.
health::HealthRules AtOnce() {
  health::HealthRules rules;
  for (health::RuleSettings& settings : rules.rules) settings.down_after = settings.up_after = {};
  return rules;
}

class HealthGuestTest : public GuestTest {
 protected:
  HealthGuestTest() {
    EXPECT_TRUE(RemoveFile(health::kHealthFile.PathIn(Root())));
    watch_ = std::make_unique<health::HealthWatch>(Root(), AtOnce(), health::MakeKernelDriverSource, probes_);
    for (const PciDevice& pf : Must(ListRailPfs(Root()))) {
      functions_.push_back(Function(pf.address, pf.address, -1, Must(NumVfsOf(Root(), pf.address))));
      for (const PciDevice& vf : Must(ReadVfs(Root(), pf.address))) {
        functions_.push_back(Function(vf.address, pf.address, vf.vf_index.value_or(0), 0));
      }
    }
    pf_id_ = Must(PciAddressOfNetdev(Root(), "pf0")).value().ToString();
  }
  static inventory::NicFunction Function(const PciAddress& address, const PciAddress& pf, int vf_index,
                                         int vfs) {
    inventory::NicFunction function;
    function.address = address;
    function.id = address.ToString();
    function.is_vf = vf_index >= 0;
    function.vf_index = vf_index;
    function.pf = pf;
    function.pf_name = Must(UplinkNetdev(Root(), pf)).value_or("");
    function.vf_count = vfs;
    return function;
  }
  // Repeats the check until the device is as wanted.
  bool Becomes(const std::string& id, bool healthy) {
    return Eventually([&] {
      watch_->ReadAllNow();
      const health::HealthTick tick = watch_->Tick(
          functions_, [this](const std::string& other) { return in_use_ == other; },
          health::HealthTime::Now());
      for (const Error& problem : tick.problems) ADD_FAILURE() << Describe(problem);
      return watch_->IsHealthy(id) == healthy;
    });
  }
  std::string ReasonOf(const std::string& id) {
    const auto reasons = watch_->Reasons(id);
    return reasons.empty() ? "" : std::string(NameOf(reasons[0].rule)) + ": " + reasons[0].text;
  }
  bool HasReason(health::HealthRule rule) {
    const auto reasons = watch_->Reasons(kBdf);
    return std::any_of(reasons.begin(), reasons.end(),
                       [rule](const health::HealthReason& reason) { return reason.rule == rule; });
  }
  // A VF without an address set by the administrator gets a random one with every bind.
  void TakeNewMac() { vf_ = VfLink(); }
  void SetUp(int index, bool up) {
    LinkChange change;
    change.up = up;
    Must(route_->ChangeLink(index, change));
  }

  ProbeWorkers probes_;
  std::unique_ptr<health::HealthWatch> watch_;
  std::vector<inventory::NicFunction> functions_;
  std::string pf_id_;
  std::string in_use_;
};

TEST_F(HealthGuestTest, VfsThatWaitForTheirPodAreWell) {
  ASSERT_GE(functions_.size(), 6U);
  for (const inventory::NicFunction& function : functions_)
    EXPECT_TRUE(Becomes(function.id, true)) << ReasonOf(function.id);
  health::HealthProbe probe(Root(), nullptr);
  health::HealthSubject vf{kBdf, true, pf_id_, "pf0", 0, false};
  std::vector<Error> problems;
  const health::Observation seen = Must(probe.Read(vf, AtOnce(), false, &problems, &problems));
  ASSERT_TRUE(seen.link);
  EXPECT_FALSE(seen.link->admin_up) << "the kernel refuses to tell the carrier of what is down";
  EXPECT_EQ(seen.link->netdev, vf_.name);
}

TEST_F(HealthGuestTest, APfThatIsDown) {
  ASSERT_TRUE(Becomes(kBdf, true)) << ReasonOf(kBdf);
  SetUp(pf_.index, false);
  EXPECT_TRUE(Becomes(kBdf, false));
  EXPECT_EQ(ReasonOf(kBdf), "link: PF pf0 (" + pf_id_ + ") is administratively down: ip link set pf0 up");
  EXPECT_FALSE(watch_->IsHealthy(pf_id_));
  SetUp(pf_.index, true);
  EXPECT_TRUE(Becomes(kBdf, true)) << ReasonOf(kBdf);
}

TEST_F(HealthGuestTest, UnboundWhileAPodHasIt) {
  const NetNs pod = MakeNetns();
  Must(route_->MoveLink(vf_.index, pod, "net1", 1500));
  in_use_ = kBdf;
  EXPECT_TRUE(Becomes(kBdf, true)) << ReasonOf(kBdf);
  const std::string driver = "/sys/bus/pci/drivers/igbvf/";
  Must(WriteAttribute(driver + "unbind", kBdf));
  EXPECT_TRUE(Becomes(kBdf, false));
  EXPECT_EQ(ReasonOf(kBdf), std::string("unbound: VF ") + kBdf + " is bound to no driver");
  Must(WriteAttribute(driver + "bind", kBdf));
  in_use_.clear();
  EXPECT_TRUE(Becomes(kBdf, true)) << ReasonOf(kBdf);
  EXPECT_TRUE(Eventually([&] { return Must(route_->FindLinkOfDevice(kBdf)).has_value(); }));
  TakeNewMac();
}

TEST_F(HealthGuestTest, VfsRemovedAndMadeAgain) {
  ASSERT_TRUE(Becomes(kBdf, true)) << ReasonOf(kBdf);
  const std::string attribute = "/sys/bus/pci/devices/" + pf_id_ + "/sriov_numvfs";
  Must(WriteAttribute(attribute, "0"));
  EXPECT_TRUE(Becomes(kBdf, false));
  EXPECT_TRUE(HasReason(health::HealthRule::kGone));
  EXPECT_TRUE(HasReason(health::HealthRule::kVfCount));
  // igb closes and opens the PF for it.
  EXPECT_TRUE(Becomes(pf_id_, true)) << ReasonOf(pf_id_);
  EXPECT_FALSE(watch_->IsHealthy(kBdf));
  Must(WriteAttribute(attribute, "2"));
  EXPECT_TRUE(Becomes(kBdf, true)) << ReasonOf(kBdf);
  EXPECT_TRUE(Eventually([&] { return Must(route_->FindLinkOfDevice(kBdf)).has_value(); }));
  TakeNewMac();
}

// The observations of earlier tests are on file, with reasons.
TEST_F(HealthGuestTest, TheNextProcessKnows) {
  SetUp(pf_.index, false);
  ASSERT_TRUE(Becomes(kBdf, false));
  const std::string reason = ReasonOf(kBdf);
  watch_ = std::make_unique<health::HealthWatch>(Root(), AtOnce(), health::MakeKernelDriverSource, probes_);
  EXPECT_FALSE(watch_->IsHealthy(kBdf));
  EXPECT_EQ(ReasonOf(kBdf), reason);
  SetUp(pf_.index, true);
  EXPECT_TRUE(Becomes(kBdf, true)) << ReasonOf(kBdf);
}

TEST_F(HealthGuestTest, DriversAreAsked) {
  auto devlink = Must(DevlinkHealth::Open());
  Must(devlink.Refresh());
  EXPECT_FALSE(Must(devlink.HasFailed(pf_id_, "fw_fatal")));
  const auto source = health::MakeKernelDriverSource();
  EXPECT_TRUE(Must(source->FailedReporters(pf_id_, {"fw_fatal"})).empty()) << "igb has no devlink";
  const auto values = Must(source->Statistics("pf0", {"rx_packets", "rx_crc_errors", "no_such_thing"}));
  EXPECT_EQ(values.size(), 2U);
}

}  // namespace
}  // namespace railhead::testing
