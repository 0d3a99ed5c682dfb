// The plugin above the real railhead-ipam.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/skel/cni_error.h"
#include "ipam/store.h"
#include "tests/cni/plugin_fixture.h"

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

TEST_F(PluginIpamTest, AddressesIncrementAndRest) {
  const Call call{.config = Device()};
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.10/24");
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.11/24");
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.12/24");
  ASSERT_TRUE(Del(call));
  const auto before = World();
  const auto exhausted = Add(call);
  ASSERT_FALSE(exhausted) << "all rest";
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

TEST_F(PluginIpamTest, AnAddressInUseIsPutAwayAndTheNextOneTaken) {
  kernel_.AddForeignHost("0000:43:00.0", "10.100.0.10", "02:cc:00:00:00:99");
  const Call call{.config = Device()};
  EXPECT_EQ(AddressOf(Add(call)), "10.100.0.11/24");
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  const auto store = AddressStore::Open(sysfs_.root());
  ASSERT_TRUE(store) << Describe(store.error());
  const auto records = store->List();
  ASSERT_TRUE(records && records->size() == 2);
  for (const AddressRecord& record : *records) {
    const bool used = record.address.ToString() == "10.100.0.10";
    EXPECT_EQ(record.state, used ? AddressState::kQuarantined : AddressState::kHeld)
        << record.address.ToString();
  }
}

TEST_F(PluginIpamTest, AFixedAddressInUseIsToldAsSuch) {
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
  for (const char* address : {"10.100.0.10", "10.100.0.11", "10.100.0.12"})
    kernel_.AddForeignHost("0000:43:00.0", address, "02:cc:00:00:00:99");
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
