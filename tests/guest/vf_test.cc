// VF settings, moves and rebinding on real SR-IOV VFs (igb, igbvf).
#include <gtest/gtest.h>

#include <cerrno>

#include "netns/nl/counters.h"
#include "tests/support/eventually.h"
#include "tests/support/netns/guest_fixture.h"

namespace railhead::testing {
namespace {

class VfTest : public GuestTest {
 protected:
  // Applies a change, checks what the kernel then reports, and changes it back.
  void RoundTrip(const VfSettings& change, const VfSettings& wanted, const VfSettings& back) {
    Must(route_->SetVf(pf_.index, 0, change));
    EXPECT_EQ(SettingsOfVf(), wanted);
    Must(route_->SetVf(pf_.index, 0, back));
    EXPECT_EQ(SettingsOfVf(), vf_before_);
  }
  Error Refused(const VfSettings& change, int vf = 0) {
    auto result = route_->SetVf(pf_.index, vf, change);
    EXPECT_FALSE(result);
    return result ? Error{} : result.error();
  }
};

TEST_F(VfTest, StateAsTheDriverReportsIt) {
  ASSERT_TRUE(vf_before_.mac && vf_before_.vlan && vf_before_.rate);
  // igb also reports a MAC that the VF driver has asked for.
  EXPECT_TRUE(vf_before_.mac->IsZero()) << vf_before_.mac->ToString();
  EXPECT_EQ(vf_before_.vlan->id, 0);
  EXPECT_EQ(vf_before_.vlan->proto, 0x8100);
  EXPECT_EQ(vf_before_.spoofchk, true);
  EXPECT_EQ(vf_before_.trust, false);
  EXPECT_EQ(vf_before_.rate->max, 0U);
  EXPECT_TRUE(Must(route_->GetVf(pf_.index, 1)));
  EXPECT_EQ(Must(route_->GetVf(pf_.index, 2)), std::nullopt);
  EXPECT_EQ(Must(route_->GetVf(vf_.index, 0)), std::nullopt);
}

// igb counts only the PF's own traffic, so the kernel reports its VFs with zeros.
TEST_F(VfTest, CountersOfAPfComeWithItsVfs) {
  LinkCounters counters = Must(LinkCounters::Open(host_));
  const PfTraffic pf = Must(counters.Read(pf_.name)).value();
  ASSERT_EQ(pf.vfs.size(), 2U);
  EXPECT_EQ(pf.vfs[1].vf, 1);
  EXPECT_GT(pf.traffic.tx_packets + pf.traffic.rx_packets, 0U);
  EXPECT_TRUE(Must(counters.Read(vf_.name))->vfs.empty());
}

TEST_F(VfTest, VlanAndQos) {
  VfSettings change;
  change.vlan = VfVlan{100, 3, 0x8100};
  VfSettings wanted = vf_before_;
  wanted.vlan = VfVlan{100, 3};
  VfSettings back;
  back.vlan = VfVlan{0, 0, 0x8100};
  RoundTrip(change, wanted, back);
}

TEST_F(VfTest, Mac) {
  VfSettings change;
  change.mac = *MacAddress::Parse("02:00:00:00:43:10");
  VfSettings wanted = vf_before_;
  wanted.mac = change.mac;
  VfSettings back;
  back.mac = vf_before_.mac;
  RoundTrip(change, wanted, back);
}

// Otherwise every test here would depend on the time of the VF's last reset.
TEST_F(VfTest, ItsOwnAddressIsNoSetting) {
  VfSettings none;
  none.mac = MacAddress{};
  Must(route_->SetVf(pf_.index, 0, none));
  EXPECT_TRUE(Must(route_->GetVf(pf_.index, 0))->mac->IsZero());
  EXPECT_EQ(SettingsOfVf(), vf_before_);
  BringUp(*route_, vf_.index);
  LinkChange down;
  down.up = false;
  Must(route_->ChangeLink(vf_.index, down));  // igbvf_down resets the VF, which then asks again
  EXPECT_TRUE(Eventually([&] { return Must(route_->GetVf(pf_.index, 0))->mac == vf_.mac; }));
  EXPECT_EQ(SettingsOfVf(), vf_before_);
}

TEST_F(VfTest, SpoofCheckTrustAndRate) {
  VfSettings change;
  change.spoofchk = false;
  change.trust = true;
  change.rate = VfRate{0, 200};
  VfSettings wanted = vf_before_;
  wanted.spoofchk = false;
  wanted.trust = true;
  wanted.rate->max = 200;
  VfSettings back;
  back.spoofchk = true;
  back.trust = false;
  back.rate = VfRate{0, 0};
  RoundTrip(change, wanted, back);
}

TEST_F(VfTest, RefusalsNameTheSetting) {
  VfSettings service;
  service.vlan = VfVlan{100, 0, 0x88a8};
  Error error = Refused(service);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.sys_errno, EPROTONOSUPPORT);
  EXPECT_EQ(error.message, "setting vlan 100, QoS 0, 802.1ad on VF 0 of interface " +
                               std::to_string(pf_.index) + ": Protocol not supported");
  EXPECT_FALSE(error.hint.empty());

  VfSettings rate;
  rate.rate = VfRate{10, 200};
  error = Refused(rate);
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_NE(error.message.find("rate 10 to 200 Mbit/s"), std::string::npos) << error.message;

  VfSettings state;
  state.link_state = VfLinkState::kEnable;
  error = Refused(state);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_NE(error.message.find("link_state enable"), std::string::npos) << error.message;

  VfSettings mac;
  mac.mac = *MacAddress::Parse("01:00:00:00:43:10");  // multicast
  EXPECT_EQ(Refused(mac).code, ErrorCode::kInvalid);

  VfSettings vlan;
  vlan.vlan = VfVlan{4096, 0, 0x8100};
  EXPECT_EQ(Refused(vlan).code, ErrorCode::kInvalid);
  vlan.vlan->id = 100;
  EXPECT_EQ(Refused(vlan, 99).code, ErrorCode::kInvalid);
}

TEST_F(VfTest, StopsAtTheRefusedSettingAndLeavesTheRest) {
  VfSettings change;
  change.vlan = VfVlan{100, 0, 0x8100};
  change.link_state = VfLinkState::kDisable;  // refused, after the VLAN
  change.rate = VfRate{0, 200};               // not reached
  const Error error = Refused(change);
  EXPECT_NE(error.message.find("link_state disable"), std::string::npos) << error.message;
  VfSettings wanted = vf_before_;
  wanted.vlan->id = 100;
  EXPECT_EQ(SettingsOfVf(), wanted);
  VfSettings back;
  back.vlan = VfVlan{};
  Must(route_->SetVf(pf_.index, 0, back));
}

TEST_F(VfTest, FoundByItsDeviceWhereverItIs) {
  EXPECT_EQ(vf_.parent_device, kBdf);
  const NetNs pod = MakeNetns();
  auto pod_route = OpenRoute(pod);
  EXPECT_EQ(Must(pod_route->FindLinkOfDevice(kBdf)), std::nullopt);
  Must(route_->MoveLink(vf_.index, pod, "net1", 1400));
  EXPECT_EQ(Must(route_->FindLinkOfDevice(kBdf)), std::nullopt);
  const auto moved = Must(pod_route->FindLinkOfDevice(kBdf));
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->name, "net1");
  EXPECT_EQ(moved->mtu, 1400);
  EXPECT_EQ(moved->mac, vf_.mac);

  Must(pod_route->MoveLink(moved->index, host_, vf_.name, vf_.mtu));
  Link after = VfLink();
  after.index = vf_.index;
  EXPECT_EQ(after, vf_);
}

TEST_F(VfTest, FailedMovesLeaveItInOneOfBoth) {
  const NetNs pod = MakeNetns();
  auto pod_route = OpenRoute(pod);
  AddVeth(pod, "net1", pod, "far1");
  const auto taken = route_->MoveLink(vf_.index, pod, "net1", std::nullopt);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kExists);
  if (const auto there = Must(pod_route->FindLinkOfDevice(kBdf))) {
    Must(pod_route->MoveLink(there->index, host_, vf_.name, vf_.mtu));
  }
  const auto large = route_->MoveLink(VfLink().index, pod, "net2", 100'000);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::kInvalid);
  EXPECT_NE(large.error().message.find('('), std::string::npos) << large.error().message;
  const auto there = Must(pod_route->FindLinkOfDevice(kBdf));
  ASSERT_TRUE(there);
  Must(pod_route->MoveLink(there->index, host_, vf_.name, vf_.mtu));
  Link after = VfLink();
  after.index = vf_.index;
  EXPECT_EQ(after, vf_);
}

// When a namespace ends, the kernel returns its device to the host, under the pod's name for it.
TEST_F(VfTest, ComesBackWhenItsNamespaceEnds) {
  {
    const NetNs pod = MakeNetns();
    Must(route_->MoveLink(vf_.index, pod, "net1", std::nullopt));
  }
  ASSERT_TRUE(Eventually([&] { return Must(route_->FindLinkOfDevice(kBdf)).has_value(); }));
  EXPECT_EQ(VfLink().name, "net1");
  LinkChange change;
  change.name = vf_.name;
  Must(route_->ChangeLink(VfLink().index, change));
}

TEST_F(VfTest, CarrierInAPodAndAnnouncement) {
  const NetNs pod = MakeNetns();
  auto pod_route = OpenRoute(pod);
  Must(route_->MoveLink(vf_.index, pod, "net1", std::nullopt));
  const Link link = GetLink(*pod_route, "net1");
  BringPodUp(*pod_route, link.index, "10.100.0.10/24");
  // pf1 is on the same hub; its own VFs and filters do not matter for broadcasts.
  const Link far = GetLink(*route_, "pf1");
  ASSERT_TRUE(Must(route_->WaitCarrier(far.index, NetDeadline())));
  Capture capture(host_, far.index);
  Must(kernel_.Announce(pod, link, {*IpAddress::Parse("10.100.0.10")}));
  const auto frame = capture.Next(0x0806);
  ASSERT_TRUE(frame);
  EXPECT_TRUE(std::equal(link.mac.bytes.begin(), link.mac.bytes.end(), frame->begin() + 6));
  LinkChange down;
  down.up = false;
  Must(pod_route->ChangeLink(link.index, down));
  Must(pod_route->MoveLink(link.index, host_, vf_.name, std::nullopt));
}

TEST_F(VfTest, RebindTakesTheMacThatThePfSet) {
  VfSettings change;
  change.mac = *MacAddress::Parse("02:00:00:00:43:10");
  Must(route_->SetVf(pf_.index, 0, change));
  EXPECT_NE(VfLink().mac, *change.mac);
  Must(kernel_.RebindDriver(kBdf));
  ASSERT_TRUE(Eventually([&] { return Must(route_->FindLinkOfDevice(kBdf)).has_value(); }));
  EXPECT_EQ(VfLink().mac, *change.mac);
  EXPECT_NE(VfLink().index, vf_.index);

  change.mac = vf_before_.mac;
  Must(route_->SetVf(pf_.index, 0, change));
  Must(kernel_.RebindDriver(kBdf));
  ASSERT_TRUE(Eventually([&] { return Must(route_->FindLinkOfDevice(kBdf)).has_value(); }));
  vf_ = VfLink();  // with a random address again
}

}  // namespace
}  // namespace railhead::testing
