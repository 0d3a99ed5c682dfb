// Which announcements are resent, on the fake kernel.
#include "cni/attachment/announcement_resend.h"

#include <gtest/gtest.h>

#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

class ResendTest : public RailsFixture {
 protected:
  const AttachmentKey key_{"rails", "c1", "net1"};

  Result<attachment::ResendResult> Again() {
    return attachment::ResendAnnouncements(sysfs_.root(), kernel_, key_);
  }
  // Of the announcements since the last call: "LINK ADDRESS ..." a line.
  std::string Announced() {
    std::string text;
    const auto& all = kernel_.announcements();
    for (; seen_ < all.size(); ++seen_) {
      text += all[seen_].link;
      for (const auto& address : all[seen_].addresses) text += " " + address.ToString();
      text += "\n";
    }
    return text;
  }
  std::size_t seen_ = 0;
};

TEST_F(ResendTest, EveryAddressOfEveryLink) {
  ASSERT_TRUE(Add(AllRails()));
  const std::string first = Announced();
  EXPECT_EQ(first, "rail0 10.100.0.10\nrail1 10.200.0.10\nrail2 10.150.0.10\n");
  EXPECT_EQ(Again(), attachment::ResendResult::kSent);
  EXPECT_EQ(Announced(), first);
}

TEST_F(ResendTest, NothingOfAnAttachmentThatIsGone) {
  EXPECT_EQ(Again(), attachment::ResendResult::kGone) << "there was none";
  ASSERT_TRUE(Add(AllRails()));
  ASSERT_TRUE(Del(AllRails()));
  Announced();
  EXPECT_EQ(Again(), attachment::ResendResult::kGone);
  ASSERT_TRUE(Kill(AllRails(), 25));
  EXPECT_EQ(Again(), attachment::ResendResult::kGone) << "not finished";
  EXPECT_EQ(Announced(), "");
}

TEST_F(ResendTest, NothingInAnotherNamespace) {
  Call call = AllRails();
  call.netns = MakePod("pod2");
  ASSERT_TRUE(Add(call));
  kernel_.RemoveNamespace(call.netns);
  Announced();
  EXPECT_EQ(Again(), attachment::ResendResult::kGone);
  ASSERT_EQ(MakePod("pod2"), call.netns);
  EXPECT_EQ(Again(), attachment::ResendResult::kGone);
  EXPECT_EQ(Announced(), "");
}

TEST_F(ResendTest, NobodyIsWaitedFor) {
  ASSERT_TRUE(Add(AllRails()));
  Announced();
  {
    const auto busy = FileLock::Acquire(paths::Lock(sysfs_.root(), Bdf(1)), std::chrono::seconds(0));
    ASSERT_TRUE(busy) << "a DEL is at work";
    EXPECT_EQ(Again(), attachment::ResendResult::kBusy);
  }
  EXPECT_EQ(Announced(), "");
  EXPECT_EQ(Again(), attachment::ResendResult::kSent);
}

TEST_F(ResendTest, AFailureIsReported) {
  ASSERT_TRUE(Add(AllRails()));
  kernel_.FailEvery("Announce", EPERM, "rail1");
  const auto again = Again();
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("c1/rails@net1"), std::string::npos) << again.error().message;
}

TEST_F(ResendTest, WhatAnAddAsksFor) {
  EXPECT_FALSE(plugin_.announced());
  ASSERT_TRUE(Add(AllRails()));
  EXPECT_EQ(plugin_.announced(), key_);

  attachment::RailheadPlugin silent(sysfs_.root(), kernel_);
  Call call = AllRails(1, "c2");
  call.netns = MakePod("pod2");
  call.config += R"(,"announce":false)";
  ASSERT_TRUE(silent.Add(Request(call)));
  EXPECT_FALSE(silent.announced());

  attachment::RailheadPlugin failing(sysfs_.root(), kernel_);
  EXPECT_FALSE(failing.Add(Request(AllRails())));
  EXPECT_FALSE(failing.announced());
}

TEST_F(ResendTest, WithoutAnAddressThereIsNothingToAnnounce) {
  attachment::RailheadPlugin plugin(sysfs_.root(), kernel_);
  ASSERT_TRUE(plugin.Add(Request({.config = Device() + R"(,"ipam":{})"})));
  EXPECT_FALSE(plugin.announced());
}

}  // namespace
}  // namespace railhead::testing
