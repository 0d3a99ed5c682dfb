// The journal for who looks often: what changed is seen, what did not is not read again.
#include "cni/state/journal_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "netns/base/files.h"
#include "netns/base/node.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

class JournalCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    temp_.Write("/proc/sys/kernel/random/boot_id", "7a5e9e3e-0b1f-4a4e-9f7e-3a1d5b6c7d8e\n");
    boot_id_ = BootId(temp_.root()).value();
  }
  JournalEntry Entry(const std::string& container, const std::string& pod_name = "net1") const {
    JournalEntry entry;
    entry.key = {"rails", container, "net1"};
    entry.boot_id = boot_id_;
    entry.phase = Phase::kDone;
    entry.netns = "/run/netns/" + container;
    entry.ipam_calls = {{"net1", "{}"}};
    AttachedDevice link;
    link.device = "0000:43:1" + container.substr(1) + ".0";
    link.pod_name = pod_name;
    entry.devices = {link};
    return entry;
  }
  void Write(const JournalEntry& entry) {
    const auto written = journal_.Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
  }
  JournalCache::View Read() {
    auto view = cache_.Read();
    EXPECT_TRUE(view) << Describe(view.error());
    return view.value_or(JournalCache::View{});
  }

  TempRoot temp_;
  std::string boot_id_;
  Journal journal_{temp_.root()};
  JournalCache cache_{temp_.root()};
};

TEST_F(JournalCacheTest, WhatDidNotChangeIsTheSame) {
  EXPECT_TRUE(Read().entries.empty());
  Write(Entry("c1"));
  Write(Entry("c2"));
  const auto first = Read().entries;
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0]->key.container_id, "c1");
  EXPECT_TRUE(first[0]->ipam_calls.empty());
  EXPECT_EQ(Read().entries, first) << "the same objects";
}

TEST_F(JournalCacheTest, WhatIsReplacedRemovedOrNewIsSeen) {
  Write(Entry("c1"));
  Write(Entry("c2"));
  Write(Entry("c3"));
  const auto before = Read().entries;
  Write(Entry("c2", "other"));
  ASSERT_TRUE(journal_.Remove(Entry("c3")));
  Write(Entry("c4"));
  const auto after = Read().entries;
  ASSERT_EQ(after.size(), 3U);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(after[1]->devices[0].pod_name, "other");
  EXPECT_EQ(after[2]->key.container_id, "c4");
}

TEST_F(JournalCacheTest, OnlyWhatIsFinishedAndOfThisBoot) {
  JournalEntry planned = Entry("c1");
  planned.phase = Phase::kPlanned;
  Write(planned);
  JournalEntry earlier = Entry("c2");
  earlier.boot_id = "another";
  Write(earlier);
  EXPECT_TRUE(Read().entries.empty());
  planned.phase = Phase::kDone;
  Write(planned);
  EXPECT_EQ(Read().entries.size(), 1U);
}

TEST_F(JournalCacheTest, ADamagedEntryIsReportedAndTheOthersAreThere) {
  Write(Entry("c1"));
  Write(Entry("c2"));
  Read();
  const std::string path = journal_.PathOf(Entry("c1").key);
  ASSERT_TRUE(WriteAtomic(path, "{", Sync::kVolatile));
  const auto view = Read();
  EXPECT_EQ(view.entries.size(), 1U);
  ASSERT_EQ(view.unreadable.size(), 1U);
  EXPECT_NE(view.unreadable[0].error.message.find(path), std::string::npos)
      << view.unreadable[0].error.message;
  EXPECT_EQ(view.unreadable[0].key, Entry("c1").key);
  EXPECT_EQ(view.unreadable[0].devices, std::set<std::string>{Entry("c1").devices[0].device});
  EXPECT_EQ(Read().unreadable.size(), 1U) << "as long as it is so";
}

}  // namespace
}  // namespace railhead::testing
