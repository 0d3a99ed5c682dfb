// The device-info file that the runtime names for ADD (capability CNIDeviceInfoFile).
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cni/protocol/cni_result.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
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

// Multus copies the file of the device plugin to the path before ADD. Ours can be there from a killed ADD.
TEST_F(PluginDeviceInfoTest, ReplacesAFileOfItsDevice) {
  for (const std::string& content :
       {R"({"type":"pci","version":"1.1.0","pci":{"pci-address":")" + Bdf(0) + R"(","rdma-device":"x"}})",
        R"({"type":"vdpa","vdpa":{"driver":"vhost","pci-address":")" + Bdf(0) + "\"}}"}) {
    Put(content);
    const auto added = Add(One());
    ASSERT_TRUE(added) << Describe(added.error());
    EXPECT_EQ(DeviceOf(), Bdf(0));
    EXPECT_EQ(Json::parse(File(kFile))["type"], "pci");
    ASSERT_TRUE(Del(One()));
    EXPECT_FALSE(IsThere());
  }
}

// Makes what is at the path of the file, which no ADD and no DEL may touch.
struct Planted {
  const char* what;
  std::function<void(const std::string& path)> make;
};

const std::vector<Planted>& FilesOfOthers() {
  static const auto holds = [](const std::string& content) {
    return [content](const std::string& path) { WriteFileAt(path, content); };
  };
  const std::string other = R"({"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:99:00.0"}})";
  static const std::vector<Planted> kAll = {
      {"of another device", holds(other)},
      {"of another vDPA device", holds(R"({"type":"vdpa","vdpa":{"pci-address":"0000:99:00.0"}})")},
      {"without a device", holds(R"({"type":"memif","memif":{"path":"/x"}})")},
      {"empty", holds("")},
      {"cut", holds("{")},
      {"a list", holds("[]")},
      {"no object", holds(R"({"pci":7})")},
      {"no text", holds(R"({"pci":{"pci-address":7}})")},
      {"too long", holds(std::string(kMaxFileSize + 1, ' '))},
      {"a link to another file",
       [other](const std::string& path) {
         WriteFileAt(path + "-target", other);
         std::filesystem::create_symlink(path + "-target", path);
       }},
      {"a link to nothing",
       [](const std::string& path) { std::filesystem::create_symlink(path + "-absent", path); }},
      {"a folder", [](const std::string& path) { std::filesystem::create_directory(path); }},
      {"a pipe", [](const std::string& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }}};
  return kAll;
}

std::string ListingOf(const std::string& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto type = entry.symlink_status().type();
    const bool file = type == std::filesystem::file_type::regular;
    lines.push_back(entry.path().filename().string() + " " + std::to_string(static_cast<int>(type)) + " " +
                    (file ? ReadFileAt(entry.path()) : ""));
  }
  std::ranges::sort(lines);
  return Join(lines, "\n");
}

TEST_F(PluginDeviceInfoTest, FilesOfOthersStayAsTheyAre) {
  const std::string path = sysfs_.directory() + kFile;
  const std::string folder = path.substr(0, path.rfind('/'));
  const auto before = World();
  for (const Planted& planted : FilesOfOthers()) {
    SCOPED_TRACE(planted.what);
    std::filesystem::create_directories(folder);
    planted.make(path);
    const std::string listing = ListingOf(folder);
    const auto added = Add(One());
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), kCniPermission) << Describe(added.error());
    EXPECT_NE(added.error().message.find("/runtimeConfig/CNIDeviceInfoFile"), std::string::npos)
        << Describe(added.error());
    EXPECT_NE(added.error().hint.find(std::string("rm ") + kFile), std::string::npos)
        << Describe(added.error());
    EXPECT_EQ(ChangedSince(before), "");
    ASSERT_TRUE(Del(One())) << "as every runtime does after a failed ADD";
    EXPECT_EQ(ListingOf(folder), listing);
    // The same without the check before ADD: the file came later.
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(Add(One()));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    planted.make(path);
    ASSERT_TRUE(Del(One()));
    EXPECT_EQ(ListingOf(folder), listing);
    std::filesystem::remove_all(folder);
  }
}

// The author of the second pod's network names the first pod's file. The entry says the same after a kill,
// and where a version without the check wrote it.
TEST_F(PluginDeviceInfoTest, AnotherPodsFileIsNeitherReplacedNorRemoved) {
  ASSERT_TRUE(Add(One()));
  const std::string theirs = File(kFile);
  const std::string other = MakePod("pod2");
  const Call attack{.container = "c2", .netns = other, .config = Usual(1) + Asking()};
  const auto attacked = Add(attack);
  ASSERT_FALSE(attacked);
  EXPECT_EQ(attacked.error().code, ErrorCode::kPermission) << Describe(attacked.error());
  EXPECT_EQ(File(kFile), theirs);

  Call plain = attack;
  plain.config = Usual(1);
  ASSERT_TRUE(Add(plain));
  const Journal journal(sysfs_.root());
  JournalEntry entry = **journal.FindByDevice(Bdf(0, 1));
  entry.device_info_file = kFile;
  ASSERT_TRUE(journal.Write(entry));
  ASSERT_TRUE(Del(plain));
  EXPECT_EQ(File(kFile), theirs);
  ASSERT_TRUE(Del(One()));
  EXPECT_FALSE(IsThere());
}

// What is half written has no name that a runtime gives to a file.
TEST_F(PluginDeviceInfoTest, AFileBesideItIsNotTouched) {
  const std::string beside = std::string(kFile) + std::string(kTemporarySuffix);
  WriteFileAt(sysfs_.directory() + beside, "of another pod");
  ASSERT_TRUE(Add(One()));
  EXPECT_EQ(File(beside), "of another pod");
  ASSERT_TRUE(Del(One()));
  EXPECT_EQ(File(beside), "of another pod");
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

// Killed between the file and the end of ADD, with the next version of the file written, whole or half.
TEST_F(PluginDeviceInfoTest, AfterAKilledAddNothingIsLeft) {
  const std::string path = sysfs_.directory() + kFile;
  const std::string folder = path.substr(0, path.rfind('/'));
  const std::string draft = folder + "/.railhead-" + Bdf(0);
  for (const bool again : {false, true}) {
    ASSERT_TRUE(Add(One()));
    const Journal journal(sysfs_.root());
    JournalEntry entry = **journal.FindByDevice(Bdf(0));
    entry.phase = Phase::kPlanned;
    ASSERT_TRUE(journal.Write(entry));
    WriteFileAt(draft, File(kFile));
    WriteFileAt(draft + ".new", "{");
    if (again) {
      const auto added = Add(One());
      ASSERT_TRUE(added) << Describe(added.error());
      EXPECT_EQ(FilesBelow(folder), std::vector<std::string>{"net-c1-net1"});
    }
    ASSERT_TRUE(Del(One()));
    EXPECT_EQ(FilesBelow(folder), std::vector<std::string>{});
  }
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
  const std::vector<std::string> refused{
      "device.json",  "/etc/passwd",          folder,
      folder + "..",  folder + ".hidden",     folder + "../dp/x",
      folder + "a/b", "/var" + folder + "./", "/var/run/k8s.cni.cncf.io/devinfo/dp/x"};
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
