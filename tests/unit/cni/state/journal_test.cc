#include "cni/state/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>
#include <vector>

#include "cni/state/paths.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kDevice = "0000:43:10.0";
constexpr const char* kBoot = "11111111-2222-3333-4444-555555555555";

JournalEntry Entry(const std::string& network = "rail0", const std::string& ifname = "net1",
                   const std::string& device = kDevice) {
  JournalEntry entry;
  entry.key = {network, "c1", ifname};
  entry.boot_id = kBoot;
  entry.netns = "/run/netns/x";
  entry.netns_inode = 4026532000;
  entry.since = 1700000000;
  AttachedDevice link;
  link.device = device;
  link.pf = "0000:43:00.0";
  link.vf = 0;
  link.pod_name = ifname;
  link.before.name = "pf0v0";
  link.before.mac = *MacAddress::Parse("02:00:00:00:00:01");
  link.before.link.mtu = 1500;
  entry.devices.push_back(link);
  return entry;
}

JournalEntry Full() {
  JournalEntry entry = Entry();
  entry.phase = Phase::kDone;
  entry.nccl_config_required = true;
  AttachedDevice& link = entry.devices[0];
  link.rail = "rail0";
  link.before.up = true;
  link.before.vf = VfSettings{MacAddress::Parse("02:00:00:00:00:03"),
                              VfVlan{7, 5, 0x88a8},
                              true,
                              false,
                              VfLinkState::kDisable,
                              VfRate{10, 20}};
  link.requested.vf = VfSettings{MacAddress::Parse("02:00:00:00:00:09"),
                                 VfVlan{100, 3, 0x8100},
                                 false,
                                 true,
                                 VfLinkState::kEnable,
                                 VfRate{1, 4294967295U}};
  link.rdma.device = "mlx5_4";
  link.rdma.soft = true;
  link.rdma.moved = true;
  link.addressing.table = 100;
  Route route;
  route.destination = *IpPrefix::Parse("10.0.0.0/8");
  route.mtu = 4200;
  route.advmss = 4000;
  link.addressing.routes = {route};
  link.addressing.addresses = {*IpPrefix::Parse("10.0.0.7/24"), *IpPrefix::Parse("fd00::7/64")};
  link.rdma.gid_index = 3;
  link.rdma.uverbs = "uverbs4";
  link.nccl.traffic_class = 106;
  return entry;
}

class JournalTest : public ::testing::Test {
 protected:
  std::string EntryPath(const std::string& name = "rail0@net1") {
    return "/run/railhead/attachments/c1/" + name + ".json";
  }
  std::string LockText(const std::string& device = kDevice) {
    return ReadFile(paths::Lock(temp_.root(), device))->value_or("no such file");
  }

  TempRoot temp_;
  Journal journal_{temp_.root()};
};

TEST_F(JournalTest, EverythingSurvivesTheFile) {
  const JournalEntry entry = Full();
  ASSERT_TRUE(journal_.Write(entry));
  const auto found = journal_.Find(entry.key);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(FormatJournalEntry(**found).value(), FormatJournalEntry(entry).value());
  const AttachedDevice& link = (*found)->devices.at(0);
  EXPECT_EQ((*found)->phase, Phase::kDone);
  EXPECT_EQ((*found)->netns_inode, 4026532000U);
  EXPECT_EQ(link.before.vf, entry.devices[0].before.vf);
  EXPECT_EQ(link.requested.vf.vlan, entry.devices[0].requested.vf.vlan);
  EXPECT_EQ(link.requested.vf.mac, entry.devices[0].requested.vf.mac);
  EXPECT_EQ(link.requested.vf.rate, entry.devices[0].requested.vf.rate);
  EXPECT_EQ(link.requested.vf.trust, true);
  EXPECT_EQ(link.requested.vf.spoofchk, false);
  EXPECT_EQ(link.requested.vf.link_state, VfLinkState::kEnable);
  EXPECT_EQ(link.addressing.addresses, entry.devices[0].addressing.addresses);
  EXPECT_EQ(link.rdma.gid_index, 3);
  EXPECT_EQ(link.rdma.uverbs, "uverbs4");
}

TEST_F(JournalTest, UnknownStaysUnknown) {
  ASSERT_TRUE(journal_.Write(Entry()));
  const auto found = journal_.Find(Entry().key);
  ASSERT_TRUE(found && *found);
  const AttachedDevice& link = (*found)->devices.at(0);
  EXPECT_EQ((*found)->phase, Phase::kPlanned);
  EXPECT_EQ(link.before.vf, std::nullopt);
  EXPECT_TRUE(link.requested.vf.Empty());
  EXPECT_EQ(link.rdma.gid_index, std::nullopt);
}

TEST_F(JournalTest, FindsByDevice) {
  ASSERT_TRUE(journal_.Write(Entry()));
  EXPECT_EQ(LockText(), "c1/rail0@net1.json\n");
  EXPECT_EQ(journal_.FindByDevice(kDevice)->value().key.ifname, "net1");
  EXPECT_FALSE(journal_.FindByDevice("0000:43:10.1")->has_value());
}

TEST_F(JournalTest, RemoveLeavesNothing) {
  ASSERT_TRUE(journal_.Write(Entry()));
  ASSERT_TRUE(journal_.Remove(Entry()));
  EXPECT_EQ(FilesBelow(temp_.directory() + "/run"),
            std::vector<std::string>{std::string("railhead/locks/") + kDevice + ".lock"});
  EXPECT_EQ(LockText(), "");
  EXPECT_FALSE(temp_.Exists("/run/railhead/attachments/c1"));
  EXPECT_FALSE(journal_.Find(Entry().key)->has_value());
  EXPECT_TRUE(journal_.Remove(Entry())) << "what is not there";
}

TEST_F(JournalTest, SiblingsShareASandbox) {
  ASSERT_TRUE(journal_.Write(Entry("rail1", "net2", "0000:83:10.0")));
  ASSERT_TRUE(journal_.Write(Entry()));
  JournalEntry other = Entry("rail0", "net1", "0000:43:10.7");
  other.key.container_id = "c2";
  ASSERT_TRUE(journal_.Write(other));
  const auto entries = journal_.OfSandbox("c1");
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].key.network, "rail0");
  EXPECT_EQ((*entries)[1].key.network, "rail1");
  EXPECT_EQ(journal_.Scan()->entries.size(), 3U);
  // Its own entry is not even read.
  temp_.Write("/run/railhead/attachments/c1/rail0@net1.json", "damaged");
  const auto siblings = journal_.SiblingsOf(Entry().key);
  ASSERT_TRUE(siblings);
  ASSERT_EQ(siblings->size(), 1U);
  EXPECT_EQ((*siblings)[0].key.network, "rail1");
  EXPECT_FALSE(journal_.OfSandbox("c1"));
  ASSERT_TRUE(journal_.Remove(Entry()));
  EXPECT_EQ(journal_.OfSandbox("c1")->size(), 1U);
  EXPECT_TRUE(journal_.OfSandbox("c3")->empty());
}

// A device that moved to another attachment stays with that one.
TEST_F(JournalTest, RemoveLeavesADeviceThatIsAnothers) {
  ASSERT_TRUE(journal_.Write(Entry("rail0", "net1")));
  ASSERT_TRUE(journal_.Write(Entry("rail0", "net9")));
  EXPECT_EQ(LockText(), "c1/rail0@net9.json\n") << "the newer owner";
  ASSERT_TRUE(journal_.Remove(Entry("rail0", "net1")));
  EXPECT_EQ(journal_.FindByDevice(kDevice)->value().key.ifname, "net9");
}

// Written in this order: entry, then lock file. A kill between them yields an entry that no lock file names.
// So does a kill between the removals, but never a lock file alone.
TEST_F(JournalTest, LockFileWithoutEntryMeansNothing) {
  ASSERT_TRUE(journal_.Write(Entry()));
  ASSERT_EQ(::unlink((temp_.directory() + EntryPath()).c_str()), 0);
  EXPECT_FALSE(journal_.FindByDevice(kDevice)->has_value());
  ASSERT_TRUE(journal_.Write(Entry("other", "net5")));
  EXPECT_EQ(journal_.FindByDevice(kDevice)->value().key.network, "other");
}

TEST_F(JournalTest, LockFileIsWrittenAfterTheEntry) {
  // The directory of the lock files cannot be made: the entry is there all the same.
  temp_.Write("/run/railhead/locks", "a file in the way");
  EXPECT_FALSE(journal_.Write(Entry()));
  EXPECT_TRUE(journal_.Find(Entry().key)->has_value());
}

TEST_F(JournalTest, EntryThatDoesNotHoldTheDeviceIsNotItsOwner) {
  ASSERT_TRUE(journal_.Write(Entry()));
  temp_.Write("/run/railhead/locks/0000:43:10.5.lock", "c1/rail0@net1.json\n");
  EXPECT_FALSE(journal_.FindByDevice("0000:43:10.5")->has_value());
}

// A shorter path replaces a longer one. And everything that a killed or foreign writer can write there.
TEST_F(JournalTest, TheFirstLineOfALockFileIsThePath) {
  ASSERT_TRUE(journal_.Write(Entry("a-network-with-a-long-name", "net1")));
  ASSERT_TRUE(journal_.Write(Entry("n", "net1")));
  EXPECT_EQ(LockText(), "c1/n@net1.json\n");
  temp_.Write("/run/railhead/locks/0000:43:10.0.lock", "c1/n@net1.json\nong-name@net1.json\n");
  EXPECT_EQ(journal_.FindByDevice(kDevice)->value().key.network, "n");
  for (const char* text : {"", "\n", "c1", "c1/n@net1", "../c1/n@net1.json", "/n@net1.json/", "c1/n.json"}) {
    temp_.Write("/run/railhead/locks/0000:43:10.0.lock", text);
    const auto found = journal_.FindByDevice(kDevice);
    ASSERT_TRUE(found) << text;
    EXPECT_FALSE(*found) << text;
    EXPECT_EQ(journal_.HoldsDevice(kDevice), false) << text;
    EXPECT_EQ(journal_.Free(kDevice), *text != '\0') << text;
    EXPECT_TRUE(journal_.HeldDevices().empty()) << text;
  }
}

TEST_F(JournalTest, EntriesOfAnotherBootAreAbsent) {
  JournalEntry entry = Entry();
  entry.boot_id = "another";
  ASSERT_TRUE(journal_.Write(entry));
  EXPECT_FALSE(journal_.Find(entry.key)->has_value());
  EXPECT_FALSE(journal_.FindByDevice(kDevice)->has_value());
  EXPECT_TRUE(journal_.OfSandbox("c1")->empty());
}

TEST_F(JournalTest, DamagedEntryNamesItsFile) {
  for (const char* content : {"", "{", "{\"version\":1}", "{\"version\":2}", "[]"}) {
    temp_.Write(EntryPath(), content);
    const auto found = journal_.Find(Entry().key);
    ASSERT_FALSE(found) << content;
    EXPECT_NE(found.error().message.find("rail0@net1.json"), std::string::npos) << found.error().message;
    EXPECT_FALSE(journal_.OfSandbox("c1")) << "not passed over in silence";
  }
}

// The journal refuses unreadable text before it changes anything. This covers each text of an entry, and
// other values from a configuration or the host.
TEST_F(JournalTest, WhatIsWrittenCanBeRead) {
  using Change = std::function<void(JournalEntry&, const std::string&)>;
  const std::vector<Change> changes = {
      [](JournalEntry& entry, const std::string& text) { entry.boot_id = text; },
      [](JournalEntry& entry, const std::string& text) { entry.netns = text; },
      [](JournalEntry& entry, const std::string& text) { entry.ipam_type = text; },
      [](JournalEntry& entry, const std::string& text) {
        entry.ipam_calls = {{text, "{}"}};
      },
      [](JournalEntry& entry, const std::string& text) {
        entry.ipam_calls = {{"net1", text}};
      },
      [](JournalEntry& entry, const std::string& text) { entry.cni_path = {text}; },
      [](JournalEntry& entry, const std::string& text) {
        entry.cni_args = {{"NAME", text}};
      },
      [](JournalEntry& entry, const std::string& text) {
        entry.cni_args = {{text, "value"}};
      },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].pf = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].rail = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].pod_name = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].resource = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].before.driver = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].before.name = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].before.alt_names = {text}; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].before.link.alias = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].rdma.device = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].rdma.uverbs = text; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].requested.alt_names = {text}; },
      [](JournalEntry& entry, const std::string& text) { entry.devices[0].requested.link.alias = text; },
      [](JournalEntry& entry, const std::string& text) {
        entry.devices[0].requested.sysctls = {{"net/a", text}};
      },
      [](JournalEntry& entry, const std::string& text) {
        entry.devices[0].requested.sysctls = {{text, "1"}};
      },
  };
  const std::vector<std::string> texts = {"", " ", "a", "\"\\\n\t\x01", "\xff\xfe", std::string("a\0b", 3)};
  int refused = 0;
  int written = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    for (const std::string& text : texts) {
      SCOPED_TRACE("change " + std::to_string(i) + ", text '" + text + "'");
      JournalEntry entry = Entry();
      entry.ipam_calls = {{"net1", "{}"}};
      changes[i](entry, text);
      const std::string boot_id = entry.boot_id;
      const auto done = journal_.Write(entry);
      const auto scan = journal_.Scan();
      ASSERT_TRUE(scan);
      EXPECT_TRUE(scan->unreadable.empty()) << Describe(scan->unreadable.front().error);
      EXPECT_EQ(scan->entries.size() + scan->earlier.size(), done ? 1U : 0U) << "nothing half done";
      ++(done ? written : refused);
      ASSERT_TRUE(journal_.Remove(entry));
    }
  }
  EXPECT_GT(written, 100);
  EXPECT_GT(refused, 3);
}

TEST_F(JournalTest, TooLongAnEntryIsNotWritten) {
  JournalEntry entry = Entry();
  entry.ipam_calls.assign(8, {"rail0", std::string(200'000, '"')});
  const auto written = journal_.Write(entry);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kInvalid);
  EXPECT_NE(Describe(written.error()).find("configuration"), std::string::npos);
  const auto found = journal_.Find(entry.key);
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

TEST_F(JournalTest, TemporaryFilesAreNoEntries) {
  ASSERT_TRUE(journal_.Write(Entry()));
  temp_.Write("/run/railhead/attachments/c1/rail0@net1.json.new", "{");
  EXPECT_EQ(journal_.OfSandbox("c1")->size(), 1U);
}

// Names of up to 128 characters had these paths before longer ones were allowed.
TEST_F(JournalTest, PathsOfLongNetworkNamesAreDistinctAndShortEnough) {
  std::set<std::string> paths;
  for (std::size_t size = 1; size <= 253; ++size) {
    for (const char last : {'a', 'b'}) {
      const AttachmentKey key{std::string(size - 1, 'n') + last, "c1", "fifteen-letters"};
      const std::string path = journal_.PathOf(key);
      const std::string name = path.substr(path.rfind('/') + 1);
      if (size <= 128) EXPECT_EQ(name, key.network + "@fifteen-letters.json");
      EXPECT_LE(name.size() + std::string(".new").size(), 255U);
      EXPECT_TRUE(paths.insert(path).second) << size;
      // An unreadable entry's key comes from its path.
      const AttachmentKey from_path{name.substr(0, name.find('@')), "c1", "fifteen-letters"};
      EXPECT_EQ(journal_.PathOf(from_path), path);
    }
  }
}

TEST_F(JournalTest, EntriesAreForRootOnly) {
  ASSERT_TRUE(journal_.Write(Entry()));
  const auto mode = std::filesystem::status(temp_.directory() + EntryPath()).permissions();
  EXPECT_EQ(mode & (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
            std::filesystem::perms::none);
}

}  // namespace
}  // namespace railhead::testing
