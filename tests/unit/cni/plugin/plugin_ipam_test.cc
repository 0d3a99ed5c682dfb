// The plugin above the real railhead-ipam.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "cni/state/conflict_log.h"
#include "ipam/store/store.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginIpamTest : public PluginFixture {
 protected:
  void SetUp() override {
    PluginFixture::SetUp();
    std::filesystem::create_symlink(RAILHEAD_IPAM, Programs() + "/railhead-ipam");
    WriteFileAt(sysfs_.directory() + "/etc/railhead/node-name", "node0\n");
    WriteFabric(R"(,"nodeRanges":{"node0":"RANGE"})");
    // Two rails, two ranges.
    std::string fabric = File("/etc/railhead/fabric.json");
    for (const char* range : {"10.100.0.10-10.100.0.12", "10.200.0.10-10.200.0.12"}) {
      fabric.replace(fabric.find("RANGE"), 5, range);
    }
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", fabric);
    ::setenv("RAILHEAD_ROOT", sysfs_.directory().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("RAILHEAD_ROOT"); }

  static std::string AddressOf(const Result<std::string>& result) {
    if (!result) return "error: " + Describe(result.error());
    return nlohmann::json::parse(*result, nullptr, false)["ips"][0]["address"];
  }
};

// With so many addresses that some may be in quarantine.
class AddressesInUseTest : public PluginIpamTest {
 protected:
  void SetUp() override {
    PluginIpamTest::SetUp();
    std::string fabric = File("/etc/railhead/fabric.json");
    fabric.replace(fabric.find("10.100.0.12"), 11, "10.100.0.49");
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", fabric);
  }
  std::vector<ipam::AddressRecord> Quarantined() {
    const auto store = ipam::AddressStore::Open(sysfs_.root());
    EXPECT_TRUE(store) << Describe(store.error());
    auto records = store ? store->List().value_or(std::vector<ipam::AddressRecord>())
                         : std::vector<ipam::AddressRecord>();
    std::erase_if(records, [](const ipam::AddressRecord& one) {
      return one.state != ipam::AddressState::kQuarantined;
    });
    return records;
  }
  [[nodiscard]] std::chrono::milliseconds QuarantineOf(const std::string& address) {
    for (const ipam::AddressRecord& one : Quarantined()) {
      if (one.address.ToString() == address) return std::chrono::milliseconds(one.until_ms - one.since_ms);
    }
    return {};
  }
  // As if `mac` had answered for the address that long ago.
  void Heard(const std::string& address, const char* mac, std::chrono::seconds ago) {
    ConflictRecord record;
    record.key = {"rails", "earlier", "net1"};
    record.device = "0000:43:00.2";
    record.address = *IpAddress::Parse(address);
    record.mac = record.source = *MacAddress::Parse(mac);
    record.boottime = BoottimeNow() - ago;
    std::filesystem::create_directories(sysfs_.directory() + "/run/railhead");
    LogConflict(sysfs_.root(), record);
  }
  static constexpr const char* kUnknownMac = "02:cc:00:00:00:99";
};

TEST_F(PluginIpamTest, AddressOfTheRailWithoutAnyConfiguration) {
  const auto before = World();
  const Call call{.config = Device()};
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.10/24");
  const Call second{.network = "rail1", .ifname = "net2", .config = Device(0, 1)};
  EXPECT_EQ(AddressOf(Add(second)), "10.200.0.10/24") << "of the device's own rail";
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(call));
  ASSERT_TRUE(Del(second));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginIpamTest, AddressesIncrementAndCoolDown) {
  const Call call{.config = Device()};
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.10/24");
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.11/24");
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.12/24");
  ASSERT_TRUE(Del(call));
  const auto before = World();
  const auto exhausted = Add(call);
  ASSERT_FALSE(exhausted) << "all are in their reuse delay";
  EXPECT_EQ(CniCodeOf(exhausted.error().code), kCniExhausted) << Describe(exhausted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginIpamTest, FailedAddGivesTheAddressBack) {
  const Call call{.config = Device()};
  kernel_.FailEvery("MoveLink", EIO);
  EXPECT_FALSE(Add(call));
  kernel_.StopFailing();
  EXPECT_FALSE(Check(call));
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
}

TEST_F(AddressesInUseTest, OneIsPutAwayAndTheNextOneTaken) {
  kernel_.AddForeignHost("0000:43:00.0", "10.100.0.10", kUnknownMac);
  const Call call{.config = Device()};
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.11/24");
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  const auto apart = Quarantined();
  ASSERT_EQ(apart.size(), 1U);
  EXPECT_EQ(apart.front().address.ToString(), "10.100.0.10");
}

// In a pod that has an interface with the device's index, the kernel gives it another one, and one more when
// it comes back.
TEST_F(AddressesInUseTest, TheNextAttemptFindsTheDeviceUnderAnotherIndex) {
  kernel_.AddForeignHost("0000:43:00.0", "10.100.0.10", kUnknownMac);
  kernel_.AddForeignHost("0000:43:00.0", "10.100.0.11", kUnknownMac);
  const Call call{.config = Device()};
  const std::string bdf = nlohmann::json::parse("{" + Device() + "}")["deviceID"];
  const auto index = [&] {
    const auto& all = kernel_.state().netdevs;
    const auto found = std::ranges::find(all, bdf, &FakeNetdev::bdf);
    return found == all.end() ? 0 : found->link.index;
  };
  const int before = index();
  for (int n = 0; kernel_.state().Find(pod_, before) == nullptr; ++n) {
    ASSERT_LT(n, 200);
    kernel_.AddVeth(pod_, "x" + std::to_string(n), kHost, "hx" + std::to_string(n));
  }
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.12/24");
  EXPECT_NE(index(), before);
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
}

// A conflict that was found once may end soon.
TEST_F(AddressesInUseTest, OnlyASecondFindingMakesALongQuarantine) {
  struct Case {
    const char* heard_from;
    std::chrono::seconds ago;
    std::chrono::seconds quarantine;
  };
  const std::string address = "10.100.0.10";
  for (const Case& one : {Case{kUnknownMac, std::chrono::seconds(61), ipam::kDefaultQuarantine},
                          Case{kUnknownMac, std::chrono::seconds(30), ipam::kFirstQuarantine},
                          Case{kUnknownMac, std::chrono::seconds(3700), ipam::kFirstQuarantine},
                          Case{"02:cc:00:00:00:98", std::chrono::seconds(61), ipam::kFirstQuarantine}}) {
    std::filesystem::remove_all(sysfs_.directory() + "/var/lib/railhead/ipam");
    std::filesystem::remove(sysfs_.directory() + "/run/railhead/attach.log");
    if (kernel_.state().hosts.empty()) kernel_.AddForeignHost("0000:43:00.0", address, kUnknownMac);
    Heard(address, one.heard_from, one.ago);
    const Call call{.config = Device()};
    EXPECT_EQ(AddressOf(Add(call)), "10.100.0.11/24");
    EXPECT_EQ(QuarantineOf(address), one.quarantine) << one.heard_from << " " << one.ago.count() << " s ago";
    ASSERT_TRUE(Del(call));
  }
}

// The attack: a pod that answers every ARP request. Pods start nevertheless, and the pool stays full.
TEST_F(AddressesInUseTest, AHostThatAnswersForAllStopsNoPod) {
  kernel_.AddResponder("0000:43:00.0", kUnknownMac);
  const auto since = BoottimeNow() - std::chrono::milliseconds(1);
  constexpr int kPods = 20;
  for (int pod = 0; pod < kPods; ++pod) {
    const Call call{.container = "c" + std::to_string(pod), .config = Device()};
    const auto added = Add(call);
    ASSERT_TRUE(added) << pod << ": " << Describe(added.error());
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << Describe(checked.error());
    ASSERT_TRUE(Del(call));
  }
  EXPECT_LE(Quarantined().size(), kMaxAddressesOfHost) << "what it answered for before it was known";
  const auto conflict_sources = ListConflictSources(sysfs_.root(), since);
  ASSERT_TRUE(conflict_sources) << Describe(conflict_sources.error());
  ASSERT_EQ(conflict_sources->size(), 1U);
  EXPECT_EQ(conflict_sources->front().mac.ToString(), kUnknownMac);
  EXPECT_EQ(conflict_sources->front().answers, static_cast<std::size_t>(kPods));
}

// The attack: a pod whose VF may spoof answers each ARP request from another MAC. Two ADDs of three tries
// each fail; then pods start nevertheless. Another rail goes on as before.
TEST_F(AddressesInUseTest, AnAnswerFromAnotherMacEachTimeStopsTwoAdds) {
  for (int host = 10; host < 50; ++host) {
    const std::string number = std::to_string(host);
    kernel_.AddForeignHost("0000:43:00.0", "10.100.0." + number, "02:cc:00:00:01:" + number);
  }
  const auto since = BoottimeNow() - std::chrono::milliseconds(1);
  for (int pod = 0; pod < 12; ++pod) {
    const Call call{.container = "c" + std::to_string(pod), .config = Device()};
    const auto added = Add(call);
    EXPECT_EQ(added.has_value(), pod >= 2) << pod;
    if (added) ASSERT_TRUE(Del(call));
  }
  EXPECT_EQ(Quarantined().size(), kMaxHostsOfPf);
  const auto sources = ListConflictSources(sysfs_.root(), since);
  ASSERT_TRUE(sources && sources->size() == 1);
  EXPECT_EQ(sources->front().pf, "0000:43:00.0");
  EXPECT_EQ(sources->front().hosts, 10U);
  kernel_.AddForeignHost("0000:83:00.0", "10.200.0.10", "02:cc:00:00:02:10");
  EXPECT_EQ(AddressOf(Add({.network = "rail1", .config = Device(0, 1)})), "10.200.0.11/24");
}

TEST_F(AddressesInUseTest, AFixedOneIsReportedAsSuch) {
  kernel_.AddForeignHost("0000:43:00.0", "10.100.0.10", "02:cc:00:00:00:99");
  const auto before = World();
  const auto added = Add({.config = Device() + R"(,"args":{"cni":{"ips":["10.100.0.10"]}})"});
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniConflict) << Describe(added.error());
  for (const char* word : {"10.100.0.10", "02:cc:00:00:00:99", "another address", "quarantine"})
    EXPECT_NE(Describe(added.error()).find(word), std::string::npos) << Describe(added.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginIpamTest, TooManyInUseAreNoAccident) {
  for (const char* host : {"10", "11", "12"})
    kernel_.AddForeignHost("0000:43:00.0", std::string("10.100.0.") + host,
                           std::string("02:cc:00:00:00:") + host);
  const auto before = World();
  const auto added = Add({.config = Device()});
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniConflict) << Describe(added.error());
  EXPECT_EQ(kernel_.probes().size(), 3U);
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginIpamTest, WithoutARangeCode7) {
  WriteFabric();
  const auto before = World();
  const auto added = Add({.config = Device()});
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniInvalidConfig) << Describe(added.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginIpamTest, DelAfterTheFabricChanged) {
  const Call call{.config = Device()};
  ASSERT_TRUE(Add(call));
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[{"name":"other","pf":"pf9"}]})");
  const auto deleted = Del(call);
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(Files(), "");
}

}  // namespace
}  // namespace railhead::testing
