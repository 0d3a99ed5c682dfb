// The node's RDMA namespace mode: the first ADD records it, others change it, the fabric demands it. And
// exclusive mode with several rails and pods.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

class PluginRdmaModeTest : public RailsFixture {
 protected:
  void SetMode(RdmaNetnsMode mode) {
    kernel_.SetRdmaMode(mode);
    kernel_.Sync();
  }
  void Demand(const std::string& mode) {
    WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
                R"({"version":1,"rdmaMode":")" + mode + R"(","rails":[{"name":"rail0","pf":"pf0"},
                    {"name":"rail1","pf":"pf1"},{"name":"rail2","pf":"pf2"}]})");
  }
  [[nodiscard]] Call Single(int rail = 0, int n = 0, const std::string& container = "c1",
                            const std::string& netns = "") const {
    return {.container = container,
            .netns = netns,
            .config = R"("deviceID":")" + Bdf(rail, n) + R"(",)" + Ipam("10.100.0.10/24") +
                      R"(,"conflictProbeMs":0)"};
  }
  void ExpectRefused(const std::vector<std::string>& words) {
    const auto before = World();
    const auto added = Add(Single());
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), kCniConflict) << Describe(added.error());
    const auto status = Status(Ipam());
    ASSERT_FALSE(status);
    EXPECT_EQ(CniCodeOf(status.error().code), kCniUnavailable) << Describe(status.error());
    for (const auto& word : words) {
      EXPECT_NE(Describe(added.error()).find(word), std::string::npos) << Describe(added.error());
      EXPECT_NE(Describe(status.error()).find(word), std::string::npos) << Describe(status.error());
    }
    EXPECT_EQ(ChangedSince(before), "");
    EXPECT_EQ(HeldAddresses(), "");
  }
  std::string NodeOf(const std::string& bdf) const {
    const auto json = nlohmann::json::parse(File("/run/cdi/railhead-" + bdf + ".json"), nullptr, false);
    return json["devices"][0]["containerEdits"]["deviceNodes"][0]["path"];
  }
  std::string UverbsOf(const std::string& rdma) {
    return "/dev/infiniband/uverbs" + std::to_string(kernel_.state().Rdma(rdma)->uverbs);
  }
};

TEST_F(PluginRdmaModeTest, ChangedSinceTheFirstAdd) {
  for (const auto& [first, second] : {std::pair(RdmaNetnsMode::kShared, RdmaNetnsMode::kExclusive),
                                      {RdmaNetnsMode::kExclusive, RdmaNetnsMode::kShared}}) {
    SetMode(first);
    ASSERT_TRUE(Add(Single()));
    ASSERT_TRUE(Del(Single()));
    SetMode(second);
    const bool now_exclusive = second == RdmaNetnsMode::kExclusive;
    ExpectRefused({now_exclusive ? "is exclusive, but it was shared" : "is shared, but it was exclusive",
                   "rdma system set netns", "/run/railhead/rdma-mode"});
    SetMode(first);
    EXPECT_TRUE(Status(Ipam()));
    EXPECT_TRUE(Add(Single())) << "set back";
    ASSERT_TRUE(Del(Single()));
    std::filesystem::remove(sysfs_.directory() + "/run/railhead/rdma-mode");
  }
}

// To go on as it is now: remove the record, as the message says.
TEST_F(PluginRdmaModeTest, RecordRemoved) {
  ASSERT_TRUE(Add(Single()));
  ASSERT_TRUE(Del(Single()));
  SetMode(RdmaNetnsMode::kExclusive);
  EXPECT_FALSE(Add(Single()));
  std::filesystem::remove(sysfs_.directory() + "/run/railhead/rdma-mode");
  EXPECT_TRUE(Status(Ipam()));
  EXPECT_TRUE(Add(Single()));
}

TEST_F(PluginRdmaModeTest, AnotherBootAnotherMode) {
  ASSERT_TRUE(Add(Single()));
  ASSERT_TRUE(Del(Single()));
  SetMode(RdmaNetnsMode::kExclusive);
  WriteFileAt(sysfs_.directory() + "/proc/sys/kernel/random/boot_id", "33333333-4444\n");
  EXPECT_TRUE(Status(Ipam()));
  EXPECT_TRUE(Add(Single()));
}

TEST_F(PluginRdmaModeTest, DemandedByTheFabric) {
  Demand("exclusive");
  ExpectRefused({"is shared, but the fabric's rdmaMode is exclusive", "rdma system set netns exclusive"});
  SetMode(RdmaNetnsMode::kExclusive);
  EXPECT_TRUE(Status(Ipam()));
  ASSERT_TRUE(Add(Single()));
  ASSERT_TRUE(Del(Single()));
  Demand("shared");
  ExpectRefused({"is exclusive, but the fabric's rdmaMode is shared"});
  SetMode(RdmaNetnsMode::kShared);
  EXPECT_TRUE(Add(Single())) << "what the fabric says beats what was once";
}

// STATUS only looks: it must not make the record that the first ADD makes.
TEST_F(PluginRdmaModeTest, StatusRecordsNothing) {
  EXPECT_TRUE(Status(Ipam()));
  EXPECT_EQ(File("/run/railhead/rdma-mode"), "");
  SetMode(RdmaNetnsMode::kExclusive);
  EXPECT_TRUE(Status(Ipam()));
  EXPECT_TRUE(Add(Single()));
}

// DEL undoes what ADD did, whatever the mode is now.
TEST_F(PluginRdmaModeTest, DelAfterTheModeChanged) {
  const auto before = World();
  ASSERT_TRUE(Add(Single()));
  SetMode(RdmaNetnsMode::kExclusive);
  const auto deleted = Del(Single());
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  SetMode(RdmaNetnsMode::kShared);
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRdmaModeTest, ExclusiveMovesAndRestoresEach) {
  SetMode(RdmaNetnsMode::kExclusive);
  const auto before = World();
  const auto added = Add(AllRails());
  ASSERT_TRUE(added) << Describe(added.error());
  for (const int rail : {0, 1, 2}) {
    const std::string name = "mlx5_pf" + std::to_string(rail) + "v0";
    EXPECT_EQ(kernel_.state().Rdma(name)->ns, pod_) << name;
    EXPECT_EQ(NodeOf(Bdf(rail)), UverbsOf(name));
  }
  const auto checked = Check(AllRails());
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(AllRails()));
  EXPECT_EQ(ChangedSince(before), "");
  for (const int rail : {0, 1, 2}) {
    EXPECT_EQ(kernel_.state().Rdma("mlx5_pf" + std::to_string(rail) + "v0")->ns, kHost);
  }
}

TEST_F(PluginRdmaModeTest, ExclusiveNamespaceVanished) {
  SetMode(RdmaNetnsMode::kExclusive);
  ASSERT_TRUE(Add(AllRails()));
  kernel_.RemoveNamespace(pod_);
  const auto deleted = Del(AllRails());
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(kernel_.state().Rdma("mlx5_pf1v0")->ns, kHost);
  EXPECT_EQ(Files(), "");
}

// A move frees the device's number and assigns the lowest free one. A spec must name its own pod's device,
// whatever other pods do before, during and after the move.
TEST_F(PluginRdmaModeTest, ExclusivePodsSideBySideHaveTheirOwnNodes) {
  SetMode(RdmaNetnsMode::kExclusive);
  // Holes, so that every move gives another number.
  kernel_.state().Unbind(*kernel_.state().Function(Bdf(0, 2)));
  kernel_.Sync();
  const std::string other = MakePod("pod2");
  ASSERT_TRUE(Add(AllRails(1)));
  Call second{.network = "rails",
              .container = "c2",
              .netns = other,
              .config = Devices({Bdf(0), Bdf(1)}) + "," + IpamForAll(30)};
  ASSERT_TRUE(Add(second));
  const auto expect_right = [&](int rail, int n) {
    const std::string name = "mlx5_pf" + std::to_string(rail) + "v" + std::to_string(n);
    EXPECT_EQ(NodeOf(Bdf(rail, n)), UverbsOf(name)) << name;
  };
  for (const int rail : {0, 1, 2}) expect_right(rail, 1);
  for (const int rail : {0, 1}) expect_right(rail, 0);
  ASSERT_TRUE(Del(AllRails(1)));
  for (const int rail : {0, 1}) expect_right(rail, 0);
  ASSERT_TRUE(Add(AllRails(1)));
  for (const int rail : {0, 1, 2}) expect_right(rail, 1);
  for (const int rail : {0, 1}) expect_right(rail, 0);
  const auto checked = Check(second);
  EXPECT_TRUE(checked) << Describe(checked.error());
}

// Plain device nodes are given before the move, which may change the number.
TEST_F(PluginRdmaModeTest, PlainNodesAreRefusedInExclusiveMode) {
  SetMode(RdmaNetnsMode::kExclusive);
  Allocate({Bdf(0)}, DeviceNodeMode::kMount);
  const auto before = World();
  const auto added = Add(Single());
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniInvalidConfig);
  EXPECT_NE(Describe(added.error()).find("plain device nodes"), std::string::npos) << Describe(added.error());
  EXPECT_NE(Describe(added.error()).find(R"("deviceNodes": "cdi")"), std::string::npos);
  EXPECT_EQ(ChangedSince(before), "");
  Allocate({Bdf(0)}, DeviceNodeMode::kCdi);
  EXPECT_TRUE(Add(Single()));
}

}  // namespace
}  // namespace railhead::testing
