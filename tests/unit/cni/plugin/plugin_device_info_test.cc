// The device-info file that the runtime names for ADD (capability CNIDeviceInfoFile).
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class PluginDeviceInfoTest : public RailsFixture {
 protected:
  static constexpr const char* kFile = "/var/run/k8s.cni.cncf.io/devinfo/cni/net-c1-net1";

  static std::string Asking(const std::string& path = kFile) {
    return R"(,"runtimeConfig":{"CNIDeviceInfoFile":")" + path + "\"}";
  }
  [[nodiscard]] Call One(int n = 0) const { return {.config = Usual(n) + Asking()}; }
  [[nodiscard]] bool IsThere() const { return std::filesystem::exists(sysfs_.directory() + kFile); }
  [[nodiscard]] std::string DeviceOf() const {
    return Json::parse(File(kFile), nullptr, false)["pci"]["pci-address"].get<std::string>();
  }
  [[nodiscard]] std::string PfOfEntry() const {
    return (*Journal(sysfs_.root()).FindByDevice(Bdf(0)))->devices.front().pf;
  }
  void Put(const std::string& content) { WriteFileAt(sysfs_.directory() + kFile, content); }
};

TEST_F(PluginDeviceInfoTest, FromAddToDel) {
  const auto added = Add(One());
  ASSERT_TRUE(added) << Describe(added.error());
  Json info = Json::parse(File(kFile), nullptr, false);
  info["pci"].erase("rdma-device");
  EXPECT_EQ(info, (Json{{"type", "pci"},
                        {"version", "1.1.0"},
                        {"pci", {{"pci-address", Bdf(0)}, {"pf-pci-address", PfOfEntry()}}}}));
  EXPECT_TRUE(Check(One()));
  ASSERT_TRUE(Del(One()));
  EXPECT_FALSE(IsThere());
  EXPECT_TRUE(Del(One())) << "without the file";
}

// The runtime may call DEL without runtimeConfig, and railheadd has no request at all.
TEST_F(PluginDeviceInfoTest, DelKnowsThePath) {
  ASSERT_TRUE(Add(One()));
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_FALSE(IsThere());
}

// Multus copies the file of the device plugin to the path before ADD.
TEST_F(PluginDeviceInfoTest, ReplacesAFile) {
  Put(R"({"type":"vdpa"})");
  ASSERT_TRUE(Add(One()));
  EXPECT_EQ(DeviceOf(), Bdf(0));
}

TEST_F(PluginDeviceInfoTest, DelKeepsTheFileOfAnotherDevice) {
  ASSERT_TRUE(Add(One()));
  Put(R"({"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:99:00.0"}})");
  ASSERT_TRUE(Del(One()));
  EXPECT_TRUE(IsThere());
}

TEST_F(PluginDeviceInfoTest, DelRemovesAFileThatIsNoJson) {
  for (const char* content : {"", "{", "[]", R"({"pci":7})", R"({"pci":{"pci-address":7}})"}) {
    ASSERT_TRUE(Add(One()));
    Put(content);
    const auto deleted = Del(One());
    EXPECT_TRUE(deleted) << content;
  }
}

TEST_F(PluginDeviceInfoTest, AFailedAddRemovesIt) {
  const auto before = World();
  Put(R"({"type":"pci","version":"1.1.0","pci":{"pci-address":")" + Bdf(0) + "\"}}");
  FailIpam("ADD");
  EXPECT_FALSE(Add(One()));
  FailIpam("");
  EXPECT_FALSE(IsThere());
  EXPECT_EQ(ChangedSince(before), "");
}

// Killed between the file and the end of ADD, with the next version of the file half written.
TEST_F(PluginDeviceInfoTest, DelAfterAKilledAddRemovesIt) {
  ASSERT_TRUE(Add(One()));
  const Journal journal(sysfs_.root());
  JournalEntry entry = **journal.FindByDevice(Bdf(0));
  entry.phase = Phase::kPlanned;
  ASSERT_TRUE(journal.Write(entry));
  WriteFileAt(sysfs_.directory() + kFile + ".new", "{");
  ASSERT_TRUE(Del(One()));
  EXPECT_FALSE(IsThere());
  EXPECT_FALSE(std::filesystem::exists(sysfs_.directory() + kFile + ".new"));
}

TEST_F(PluginDeviceInfoTest, SeveralDevicesHaveNone) {
  Call all = AllRails();
  all.config += Asking();
  const auto added = Add(all);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_FALSE(IsThere());
  EXPECT_TRUE(Del(all));
}

// An author of networks can write runtimeConfig, and root writes and removes the file.
TEST_F(PluginDeviceInfoTest, OtherPathsAreRefused) {
  const auto before = World();
  const std::string folder = "/run/k8s.cni.cncf.io/devinfo/cni/";
  const std::vector<std::string> refused{"device.json",
                                         "/etc/passwd",
                                         folder,
                                         folder + "..",
                                         folder + "../dp/x",
                                         folder + "a/b",
                                         "/var" + folder + "./",
                                         "/var/run/k8s.cni.cncf.io/devinfo/dp/x"};
  for (const std::string& path : refused) {
    const auto added = Add({.config = Usual() + Asking(path)});
    ASSERT_FALSE(added) << path;
    EXPECT_NE(added.error().message.find("/runtimeConfig/CNIDeviceInfoFile"), std::string::npos)
        << Describe(added.error());
  }
  EXPECT_EQ(ChangedSince(before), "");
  const auto added = Add({.config = Usual() + Asking(folder + "net-c1-net1")});
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_TRUE(IsThere());
}

}  // namespace
}  // namespace railhead::testing
