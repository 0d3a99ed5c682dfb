// Addresses that another host has, and gateways: ADD probes and resolves them, CHECK checks them. IPv6 and
// both families.
#include <gtest/gtest.h>
#include <linux/neighbour.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "cni/protocol/cni_result.h"
#include "cni/state/attach_log.h"
#include "cni/state/conflict_log.h"
#include "netns/base/files.h"
#include "tests/support/plugin/rails_fixture.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

constexpr const char* kOther = "02:cc:00:00:00:99";
constexpr const char* kGateway = "02:cc:00:00:00:fe";

class PluginConflictTest : public RailsFixture {
 protected:
  void Refused(const Call& call, int code, const std::vector<std::string>& words) {
    SCOPED_TRACE(call.config);
    const auto before = World();
    const auto added = Add(call);
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), code) << Describe(added.error());
    for (const auto& word : words) {
      EXPECT_NE(Describe(added.error()).find(word), std::string::npos) << Describe(added.error());
    }
    EXPECT_EQ(ChangedSince(before), "");
  }
  [[nodiscard]] Call Single(const std::string& more = "") const {
    return {.config = R"("deviceID":")" + Bdf(0) + R"(",)" + Ipam() + more};
  }
  void WriteDualStack() {
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
                R"({"version":1,"rails":[{"name":"rail0","pf":"pf0","subnet":"fd00:100::/64",
                    "gateway":"fd00:100::fe","routes":["fd00::/16"]}]})");
  }
  static std::string DualIpam() {
    return R"("ipam":{"type":"test-ipam","address":["10.100.0.10/24","fd00:100::10/64"]})";
  }
  std::optional<Neighbour> NeighbourOf(const std::string& address) {
    for (const auto& one : kernel_.state().Namespace(pod_)->neighbours) {
      if (one.address == IpAddress::Parse(address)) return one;
    }
    return std::nullopt;
  }
  int ArpIgnore(const std::string& link) {
    const FakeNetdev* netdev = kernel_.state().Find(pod_, link);
    return netdev == nullptr ? -1 : netdev->ipv4.at(Ipv4Conf::kArpIgnore);
  }
};

TEST_F(PluginConflictTest, AddressOfAnotherHost) {
  kernel_.AddForeignHost("0000:43:00.0", "10.100.0.10", kOther);
  Refused(Single(), kCniConflict, {"10.100.0.10", kOther, "net1", Bdf(0), "exclude"});
  EXPECT_EQ(HeldAddresses(), "");
  EXPECT_TRUE(kernel_.announcements().empty()) << "what is not ours is not announced";
}

TEST_F(PluginConflictTest, OnOneOfSeveralRails) {
  kernel_.AddForeignHost("0000:c3:00.0", "10.150.0.10", kOther);
  Refused(AllRails(), kCniConflict, {"10.150.0.10", kOther, "rail2"});
  EXPECT_TRUE(kernel_.announcements().empty());
  EXPECT_EQ(kernel_.probes().size(), 1U) << "all rails at once";
  EXPECT_EQ(kernel_.probes().at(0).targets.size(), 3U);
}

// The same address in another rail's network is not a conflict.
TEST_F(PluginConflictTest, SameAddressInAnotherNetwork) {
  kernel_.AddForeignHost("0000:83:00.0", "10.100.0.10", kOther);
  const auto added = Add(Single());
  EXPECT_TRUE(added) << Describe(added.error());
}

// Two pods of one node, by an IPAM plugin that gave one address twice.
TEST_F(PluginConflictTest, AddressOfAnotherPod) {
  Call first = Single();
  first.container = "c0";
  first.netns = MakePod("pod0");
  ASSERT_TRUE(Add(first));
  const std::string mac = PodLink("net1", first.netns).mac.ToString();
  Refused({.config = R"("deviceID":")" + Bdf(0, 1) + R"(",)" + Ipam()}, kCniConflict, {"10.100.0.10", mac});
  EXPECT_TRUE(Check(first));
}

TEST_F(PluginConflictTest, BudgetOfFabricAndConfiguration) {
  ASSERT_TRUE(Add(Single()));
  EXPECT_EQ(kernel_.probes().at(0).budget, std::chrono::milliseconds(200)) << "the default";
  ASSERT_TRUE(Del(Single()));
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"rail0","pf":"pf0"}],"addresses":{"conflictProbeMs":700}})");
  ASSERT_TRUE(Add(Single()));
  EXPECT_EQ(kernel_.probes().at(1).budget, std::chrono::milliseconds(700));
  ASSERT_TRUE(Del(Single()));
  ASSERT_TRUE(Add(Single(R"(,"conflictProbeMs":50)")));
  EXPECT_EQ(kernel_.probes().at(2).budget, std::chrono::milliseconds(50));
}

TEST_F(PluginConflictTest, ZeroDoesNotProbe) {
  kernel_.AddForeignHost("", "10.100.0.10", kOther);
  const Call call = Single(R"(,"conflictProbeMs":0)");
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_TRUE(kernel_.probes().empty());
  EXPECT_EQ(kernel_.Log().find("ProbeAddresses"), std::string::npos);
  EXPECT_EQ(ArpIgnore("net1"), 1);
  EXPECT_TRUE(Check(call));
}

TEST_F(PluginConflictTest, WithoutAddressNothingIsProbed) {
  ASSERT_TRUE(Add({.config = R"("deviceID":")" + Bdf(0) + R"(","ipam":{})"}));
  EXPECT_TRUE(kernel_.probes().empty());
  EXPECT_EQ(ArpIgnore("net1"), 1);
}

// The pod's links have their addresses while ADD probes whether another host has them. Until the probe ends,
// the pod must not answer ARP for them.
TEST_F(PluginConflictTest, SilentWhileProbing) {
  const Call call{.config = Devices({Bdf(0), Bdf(1)}) + "," + IpamForAll()};
  const int calls = CountAdd(call, 60);
  kernel_.ClearLog();
  int probing = 0;
  for (int nth = 1; nth <= calls && probing == 0; ++nth) {
    ASSERT_TRUE(Kill(call, nth));
    if (kernel_.Log().find("ProbeAddresses") != std::string::npos) {
      probing = nth;
      for (const char* link : {"rail0", "rail1"}) {
        EXPECT_EQ(ArpIgnore(link), 8) << link;
        EXPECT_TRUE(PodLink(link).up);
        EXPECT_FALSE(kernel_.state().Find(pod_, link)->addresses.empty());
      }
    }
    ASSERT_TRUE(Del(call));
    kernel_.ClearLog();
  }
  EXPECT_GT(probing, 0);
  ASSERT_TRUE(Add(call));
  for (const char* link : {"rail0", "rail1"}) EXPECT_EQ(ArpIgnore(link), 1) << link;
}

TEST_F(PluginConflictTest, ArpIgnoreOfTheConfiguration) {
  const Call call = Single(R"(,"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":"2"})");
  ASSERT_TRUE(Add(call));
  EXPECT_EQ(ArpIgnore("net1"), 2);
  EXPECT_TRUE(Check(call));
}

// ADD resolves gateways, so a job's first packet does not wait for ARP.
TEST_F(PluginConflictTest, GatewayIsResolved) {
  kernel_.AddForeignHost("", "10.100.0.254", kGateway);
  ASSERT_TRUE(Add(Single()));
  const auto neighbour = NeighbourOf("10.100.0.254");
  ASSERT_TRUE(neighbour);
  EXPECT_EQ(neighbour->mac.ToString(), kGateway);
}

TEST_F(PluginConflictTest, GatewayThatIsSilent) {
  ASSERT_TRUE(Add(Single(R"(,"linkTimeoutSeconds":0)"))) << "not asked for: no reason to fail";
  ASSERT_TRUE(Del(Single()));
  Refused(Single(R"(,"requireGateway":true,"linkTimeoutSeconds":0)"), kCniTryAgainLater,
          {"gateway 10.100.0.254 of net1", Bdf(0), "does not answer"});
  kernel_.AddForeignHost("", "10.100.0.254", kGateway);
  const auto added = Add(Single(R"(,"requireGateway":true,"linkTimeoutSeconds":0)"));
  EXPECT_TRUE(added) << Describe(added.error());
}

TEST_F(PluginConflictTest, GatewaysOfAllRailsAreChecked) {
  Call call = AllRails();
  call.config += R"(,"requireGateway":true,"linkTimeoutSeconds":0)";
  for (const auto& [address, silent] :
       {std::pair("10.100.0.254", "10.200.0.254"), {"10.200.0.254", "10.150.0.254"}}) {
    kernel_.AddForeignHost("", address, kGateway);
    Refused(call, kCniTryAgainLater, {std::string("gateway ") + silent});
  }
  kernel_.AddForeignHost("", "10.150.0.254", kGateway);
  EXPECT_TRUE(Add(call));
}

TEST_F(PluginConflictTest, IPv6) {
  WriteDualStack();
  const Call call{.config = R"("deviceID":")" + Bdf(0) + R"(",)" + Ipam("fd00:100::10/64")};
  kernel_.AddForeignHost("", "fd00:100::fe", kGateway);
  const auto before = World();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(kernel_.probes().at(0).targets.at(0).address.ToString(), "fd00:100::10");
  EXPECT_EQ(kernel_.announcements().at(0).addresses.at(0).ToString(), "fd00:100::10");
  EXPECT_EQ(NeighbourOf("fd00:100::fe")->mac.ToString(), kGateway);
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
  kernel_.AddForeignHost("", "fd00:100::10", kOther);
  Refused(call, kCniConflict, {"fd00:100::10", kOther});
}

TEST_F(PluginConflictTest, BothFamilies) {
  WriteDualStack();
  const Call call{.config = R"("deviceID":")" + Bdf(0) + R"(",)" + DualIpam()};
  const auto before = World();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  const auto& addresses = kernel_.state().Find(pod_, "net1")->addresses;
  const auto has = [&](const char* text) {
    return std::find(addresses.begin(), addresses.end(), *IpPrefix::Parse(text)) != addresses.end();
  };
  EXPECT_TRUE(has("10.100.0.10/24") && has("fd00:100::10/64"));
  EXPECT_EQ(kernel_.probes().at(0).targets.size(), 2U);
  EXPECT_EQ(kernel_.announcements().at(0).addresses.size(), 2U);
  const auto conf = File("/run/railhead/nccl/c1/nccl.conf");
  EXPECT_NE(conf.find("NCCL_IB_GID_INDEX="), std::string::npos) << conf;
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
  kernel_.AddForeignHost("", "fd00:100::10", kOther);
  Refused(call, kCniConflict, {"fd00:100::10", kOther});
}

// A failed probe is not a conflict, and ADD reports it.
TEST_F(PluginConflictTest, ProbeThatFails) {
  kernel_.FailEvery("ProbeAddresses", ENOBUFS);
  const auto before = World();
  const auto added = Add(Single());
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("probing for address conflicts"), std::string::npos);
  EXPECT_EQ(ChangedSince(before), "");
}

// Which answers to address probes are conflicts, and which of them are recorded.

MacAddress MacNumber(int number) {
  return MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(number)}};
}
IpAddress AddressNumber(int number, bool v4) {
  return IpAddress::Parse((v4 ? "10.0.0." : "fd00::") + std::to_string(number)).value();
}

struct Model {
  std::vector<ConflictRecord> log;

  [[nodiscard]] std::vector<ConflictRecord> OfTheLastHour(milliseconds now) const {
    std::vector<ConflictRecord> records;
    for (const ConflictRecord& one : log) {
      if (one.boottime <= now && now - one.boottime <= kConflictLifetime) records.push_back(one);
    }
    return records;
  }
  [[nodiscard]] std::size_t AddressesOf(const ConflictRecord& host) const {
    std::set<IpAddress> addresses;
    for (const ConflictRecord& one : OfTheLastHour(host.boottime)) {
      if (one.source == host.source && one.address.IsV4() == host.address.IsV4())
        addresses.insert(one.address);
    }
    return addresses.size();
  }
  [[nodiscard]] std::size_t HostsBeside(const ConflictRecord& host) const {
    std::set<MacAddress> hosts;
    for (const ConflictRecord& one : OfTheLastHour(host.boottime)) {
      if (one.pf == host.pf) hosts.insert(one.source);
    }
    return hosts.size();
  }
  [[nodiscard]] bool Heard(const ConflictRecord& host) const {
    for (const ConflictRecord& one : OfTheLastHour(host.boottime)) {
      const bool long_ago = host.boottime - one.boottime >= kConfirmAfter;
      if (long_ago && one.source == host.source && one.address == host.address) return true;
    }
    return false;
  }
};

// Random hosts, PFs and times against the rule in words. A host is ignored from its third address of a family
// on; everybody is, from the seventh host of a PF on.
TEST(ConflictLogTest, AsTheRuleSays) {
  std::mt19937 random(6);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same choices in every run
  Model model;
  milliseconds now = std::chrono::hours(5);
  std::map<std::string, int> seen;
  for (int add = 0; add < 6000; ++add) {
    now += std::chrono::seconds(random() % 120);
    // Few honest hosts, few that answer for many addresses, and a crowd.
    const int phase = add / 300 % 3;
    const unsigned hosts = phase == 2 ? 60 : 5;
    const unsigned addresses = phase == 0 ? 2 : 9;
    std::vector<ConflictRecord> found(1 + random() % 3);
    for (ConflictRecord& one : found) {
      one.pf = "0000:43:00." + std::to_string(random() % 2);
      one.address = AddressNumber(static_cast<int>(1 + random() % addresses), random() % 3 != 0);
      one.source = one.mac = MacNumber(static_cast<int>(random() % hosts));
      one.boottime = now;
    }
    const auto confirmed = JudgeConflicts(model.log, &found);
    model.log.insert(model.log.end(), found.begin(), found.end());
    std::size_t expected = 0;
    for (const ConflictRecord& one : found) {
      ASSERT_EQ(one.crowd, model.HostsBeside(one) > 6);
      ASSERT_EQ(one.ignored, one.crowd || model.AddressesOf(one) > 2);
      if (!one.ignored && model.Heard(one)) ++expected;
      ++seen[one.crowd ? "crowd" : one.ignored ? "ignored" : "conflict"];
    }
    ASSERT_EQ(confirmed.size(), expected);
    seen["confirmed"] += static_cast<int>(expected);
    if (model.log.size() > 600) model.log.erase(model.log.begin(), model.log.begin() + 100);
  }
  for (const char* what : {"ignored", "crowd", "confirmed", "conflict"}) EXPECT_GT(seen[what], 50) << what;
}

TEST(ConflictLogTest, TheLogKeepsThemBesideTimings) {
  const TempRoot root;
  ConflictRecord record{
      {"rails", "c1", "net1"}, "0000:43:00.2", AddressNumber(7, true), MacNumber(1), MacNumber(2),
      milliseconds(12345),     true,           "0000:43:00.0"};
  ASSERT_TRUE(MakeDirectories(root.root().Path("/run/railhead")));
  LogConflict(root.root(), record);
  LogAttachTiming(root.root(), {{"rails", "c1", "net1"}, 1, "", {{"move", std::chrono::microseconds(5)}}});
  AppendToAttachLog(root.root(), {{"conflictAddress", "10.0.0.300"}, {"conflictMac", "02:00:00:00:00:01"}});
  EXPECT_EQ(ReadConflicts(root.root()).value(), std::vector<ConflictRecord>{record});
  EXPECT_EQ(ReadAttachTimings(root.root())->size(), 1U);
  const auto conflict_sources = ListConflictSources(root.root(), milliseconds(12344));
  ASSERT_TRUE(conflict_sources && conflict_sources->size() == 1);
  EXPECT_EQ(conflict_sources->front().mac, MacNumber(2));
  EXPECT_TRUE(ListConflictSources(root.root(), milliseconds(12345))->empty());
}

TEST(ConflictLogTest, ACrowdIsOneFindingAndNamesItsPf) {
  const TempRoot root;
  ASSERT_TRUE(MakeDirectories(root.root().Path("/run/railhead")));
  for (int host = 1; host <= 9; ++host) {
    ConflictRecord record{{"rails", "c1", "net1"}, "0000:43:00.2", AddressNumber(host % 4, true)};
    record.source = record.mac = MacNumber(host);
    record.boottime = milliseconds(host);
    record.ignored = record.crowd = true;
    record.pf = "0000:43:00.0";
    LogConflict(root.root(), record);
  }
  const auto sources = ListConflictSources(root.root(), milliseconds(1));
  ASSERT_TRUE(sources && sources->size() == 1);
  EXPECT_EQ(sources->front().hosts, 8U);
  EXPECT_EQ(sources->front().answers, 8U);
  EXPECT_EQ(sources->front().ToString(),
            "8 hosts on PF 0000:43:00.0, 02:00:00:00:00:09 (no pod of this node) among them, answer for 4 "
            "addresses, 10.0.0.0 among them");
}

}  // namespace
}  // namespace railhead::testing
