// Who answers on the fake's network: neighbours and address conflicts. And processes.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

constexpr const char* kPf = "0000:43:00.0";
constexpr const char* kOtherPf = "0000:83:00.0";
constexpr milliseconds kBudget{200};

class FakeNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kernel_.AddPf({.address = kPf, .netdev = "pf0"}, {.count = 2, .up = true});
    kernel_.AddPf({.address = kOtherPf, .netdev = "pf1"}, {.count = 1, .up = true});
  }
  NetNs Host() { return std::move(*kernel_.HostNetns()); }
  std::unique_ptr<RouteApi> Route() { return std::move(*kernel_.OpenRoute(Host())); }
  Link Find(const std::string& name) { return Route()->FindLink(name)->value(); }
  // The MAC of the conflict, if there is one.
  std::optional<MacAddress> Probed(const std::string& link, const std::string& address) {
    const AddressClaim claim{Find(link).index, Find(link).mac, *IpAddress::Parse(address)};
    const auto found = kernel_.ProbeAddresses(Host(), {claim}, kBudget).value();
    if (found.empty()) return std::nullopt;
    EXPECT_EQ(found[0].claim, claim);
    return found[0].other;
  }
  std::optional<MacAddress> Resolved(const std::string& link, const std::string& address) {
    const int index = Find(link).index;
    const IpAddress ip = *IpAddress::Parse(address);
    EXPECT_TRUE(Route()->ResolveNeighbour(index, ip));
    return Route()->WaitNeighbour(index, ip, std::chrono::steady_clock::now()).value();
  }

  FakeSysfs sysfs_;
  FakeKernel kernel_{sysfs_};
  const MacAddress mac_ = *MacAddress::Parse("02:00:00:00:00:99");
};

TEST_F(FakeNetworkTest, ForeignHostsAnswerOnTheirNetwork) {
  kernel_.AddForeignHost(kPf, "10.0.0.7", "02:00:00:00:00:99");
  kernel_.AddForeignHost("", "fd00::7", "02:00:00:00:00:99");
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), mac_);
  EXPECT_EQ(Probed("pf0", "10.0.0.7"), mac_);
  EXPECT_EQ(Probed("pf1v0", "10.0.0.7"), std::nullopt);
  EXPECT_EQ(Probed("pf1v0", "fd00::7"), mac_) << "in all networks";
  EXPECT_EQ(Probed("pf0v0", "10.0.0.8"), std::nullopt);
  EXPECT_EQ(kernel_.probes().size(), 5U);
  EXPECT_EQ(kernel_.probes()[0].budget, kBudget);
}

TEST_F(FakeNetworkTest, OtherLinksOfTheSamePfAndVlanAnswer) {
  kernel_.AddAddress(kHost, "pf0v1", "10.0.0.7/24");
  kernel_.AddAddress(kHost, "pf0v1", "fd00::7/64");
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), Find("pf0v1").mac);
  EXPECT_EQ(Probed("pf1v0", "10.0.0.7"), std::nullopt) << "another PF";
  ASSERT_TRUE(kernel_.WriteSysctls(Host(), {{"net/ipv4/conf/pf0v1/arp_ignore", "8"}}));
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), std::nullopt) << "it does not answer";
  EXPECT_EQ(Probed("pf0v0", "fd00::7"), Find("pf0v1").mac) << "which is of ARP only";
  ASSERT_TRUE(kernel_.WriteSysctls(Host(), {{"net/ipv4/conf/pf0v1/arp_ignore", "1"}}));
  VfChange vlan;
  vlan.vlan = {{100, 0}};
  ASSERT_TRUE(Route()->SetVf(Find("pf0").index, 1, vlan));
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), std::nullopt) << "another VLAN";
  ASSERT_TRUE(Route()->SetVf(Find("pf0").index, 0, vlan));
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), Find("pf0v1").mac);
  kernel_.SetUp(kHost, "pf0v1", false);
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), std::nullopt) << "it is down";
}

TEST_F(FakeNetworkTest, VethPeersAnswer) {
  const std::string pod = kernel_.AddNamespace("pod");
  kernel_.AddVeth(kHost, "veth0", pod, "eth0");
  kernel_.AddAddress(pod, "eth0", "10.0.0.7/24");
  EXPECT_TRUE(Probed("veth0", "10.0.0.7"));
  EXPECT_FALSE(Probed("pf0v0", "10.0.0.7"));
}

TEST_F(FakeNetworkTest, OneOwnMacIsNoConflict) {
  kernel_.AddForeignHost(kPf, "10.0.0.7", Find("pf0v0").mac.ToString());
  EXPECT_EQ(Probed("pf0v0", "10.0.0.7"), std::nullopt);
}

TEST_F(FakeNetworkTest, ProbesNeedALinkThatIsUp) {
  const IpAddress address = *IpAddress::Parse("10.0.0.7");
  EXPECT_EQ(kernel_.ProbeAddresses(Host(), {{4242, mac_, address}}, kBudget).error().code,
            ErrorCode::kNotFound);
  const int index = Find("pf0v0").index;
  kernel_.SetUp(kHost, "pf0v0", false);
  EXPECT_EQ(kernel_.ProbeAddresses(Host(), {{index, mac_, address}}, kBudget).error().sys_errno, ENETDOWN);
  EXPECT_TRUE(kernel_.ProbeAddresses(Host(), {{index, mac_, address}}, milliseconds(0))->empty())
      << "nothing is sent";
  kernel_.FailEvery("ProbeAddresses", EPERM);
  EXPECT_EQ(kernel_.ProbeAddresses(Host(), {}, kBudget).error().sys_errno, EPERM);
}

TEST_F(FakeNetworkTest, NeighboursAreWhoAnswers) {
  kernel_.AddForeignHost(kPf, "10.0.0.254", "02:00:00:00:00:99");
  const IpAddress gateway = *IpAddress::Parse("10.0.0.254");
  const std::string before = kernel_.Snapshot();
  const int index = Find("pf0v0").index;
  EXPECT_EQ(*Route()->WaitNeighbour(index, gateway, {}), std::nullopt) << "never asked";
  EXPECT_EQ(Resolved("pf0v0", "10.0.0.254"), mac_);
  EXPECT_EQ(Resolved("pf1v0", "10.0.0.254"), std::nullopt);
  EXPECT_NE(kernel_.Snapshot(), before);
  EXPECT_EQ(Route()->ListNeighbours(index)->size(), 1U);
  // Entries go with the link's state.
  for (const char* link : {"pf0v0", "pf1v0"}) {
    kernel_.SetUp(kHost, link, false);
    kernel_.SetUp(kHost, link, true);
  }
  EXPECT_EQ(kernel_.Snapshot(), before);
  EXPECT_EQ(Route()->ResolveNeighbour(4242, gateway).error().code, ErrorCode::kNotFound);
}

TEST_F(FakeNetworkTest, ANeighbourThatComesLaterIsFoundByWaiting) {
  const IpAddress gateway = *IpAddress::Parse("10.0.0.254");
  EXPECT_EQ(Resolved("pf0v0", "10.0.0.254"), std::nullopt);
  kernel_.AddForeignHost(kPf, "10.0.0.254", "02:00:00:00:00:99");
  EXPECT_EQ(*Route()->WaitNeighbour(Find("pf0v0").index, gateway, {}), mac_);
}

TEST_F(FakeNetworkTest, ProcessesAreThereWhenSaidSo) {
  const std::string pod = kernel_.AddNamespace("pod");
  EXPECT_TRUE(*kernel_.HasProcesses(Host()));
  EXPECT_FALSE(*kernel_.HasProcesses(*kernel_.OpenNetns(pod)));
  kernel_.SetHasProcesses(pod, true);
  const NetNs ns = std::move(*kernel_.OpenNetns(pod));
  EXPECT_TRUE(*kernel_.HasProcesses(ns));
  kernel_.RemoveNamespace(pod);
  EXPECT_FALSE(*kernel_.HasProcesses(ns));
}

}  // namespace
}  // namespace railhead::testing
