// Attachments whose journal entry cannot be read: how railctl journal restore recovers them.
#include <nlohmann/json.hpp>

#include "cni/attachment/recover.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

constexpr const char* kPath = "/run/railhead/attachments/c1/rails@net1.json";

class PluginRecoverTest : public RailsFixture {
 protected:
  void SetUp() override {
    RailsFixture::SetUp();
    ASSERT_TRUE(Add(AllRails()));
    text_ = File(kPath);
    kernel_.SetHasProcesses(pod_, false);
  }
  void Damage(const std::string& text) { WriteFileAt(sysfs_.directory() + kPath, text); }
  // One value of one device is of a wrong type.
  void DamageDevice(std::size_t n) {
    auto json = nlohmann::json::parse(text_);
    json["devices"][n]["before"]["link"]["mtu"] = "nine thousand";
    Damage(json.dump());
  }
  Result<attachment::Recovery> Recover(bool force) {
    const Journal journal(sysfs_.root());
    const auto scan = journal.Scan();
    EXPECT_EQ(scan->unreadable.size(), 1U);
    return attachment::RecoverAttachment(sysfs_.root(), kernel_, journal, scan->unreadable.at(0), force);
  }
  // The host's state is as before, except for names: after a reset the earlier names are unknown.
  void ExpectOnHost(const std::string& bdf) {
    const FakeNetdev* netdev = kernel_.state().OfFunction(bdf);
    ASSERT_NE(netdev, nullptr);
    EXPECT_EQ(netdev->ns, kHost);
    EXPECT_EQ(kernel_.state().Function(bdf)->state->vlan, VfVlan{}) << bdf;
  }

  std::string text_;
};

TEST_F(PluginRecoverTest, NothingIsTouchedWhileThePodRuns) {
  kernel_.SetHasProcesses(pod_, true);
  const auto attached = World();
  DamageDevice(1);
  const auto refused = Recover(false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  Damage("{");
  EXPECT_FALSE(Recover(false)) << "nobody knows whether it runs";
  Damage(text_);
  EXPECT_EQ(ChangedSince(attached), "");
}

TEST_F(PluginRecoverTest, OneDamagedDeviceCostsNoOther) {
  for (const std::size_t damaged : {0, 1, 2}) {
    SCOPED_TRACE(damaged);
    if (damaged > 0) {
      ASSERT_TRUE(Add(AllRails()));
    }
    text_ = File(kPath);
    DamageDevice(damaged);
    const auto first = Recover(false);
    ASSERT_TRUE(first) << Describe(first.error());
    EXPECT_EQ(first->restored.size(), 2U);
    EXPECT_FALSE(first->ended) << "the damaged device is not given out";
    EXPECT_NE(File(kPath), "");
    const auto forced = Recover(true);
    ASSERT_TRUE(forced) << Describe(forced.error());
    EXPECT_TRUE(forced->ended);
    EXPECT_EQ(forced->reset, std::vector<std::string>{Bdf(static_cast<int>(damaged))});
    for (int rail = 0; rail < 3; ++rail) ExpectOnHost(Bdf(rail));
    EXPECT_EQ(Files(), "");
    EXPECT_EQ(HeldAddresses(), "");
  }
}

TEST_F(PluginRecoverTest, AFileThatSaysNothing) {
  for (const std::string& text : {std::string(), std::string("{"), text_.substr(0, text_.size() / 2)}) {
    if (File(kPath).empty()) {
      ASSERT_TRUE(Add(AllRails()));
    }
    Damage(text);
    const auto forced = Recover(true);
    ASSERT_TRUE(forced) << Describe(forced.error());
    EXPECT_TRUE(forced->ended);
    EXPECT_EQ(forced->reset.size(), 3U);
    EXPECT_FALSE(forced->lost.empty());
    for (int rail = 0; rail < 3; ++rail) ExpectOnHost(Bdf(rail));
    EXPECT_EQ(Files(), "");
    EXPECT_TRUE(Del(AllRails())) << "the runtime's DEL is no longer in the way";
  }
}

// The next pod gets the devices, and everything is as ever.
TEST_F(PluginRecoverTest, TheDevicesCanBeUsedAgain) {
  Damage("{");
  const auto refused = Add(AllRails(0, "c2"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().hint.find("railctl journal restore"), std::string::npos) << refused.error().hint;
  ASSERT_TRUE(Recover(true));
  const auto added = Add(AllRails(0, "c2"));
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_TRUE(Check(AllRails(0, "c2")));
  EXPECT_TRUE(Del(AllRails(0, "c2")));
}

}  // namespace
}  // namespace railhead::testing
