#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

class PoolsTest : public TwoRails {};

TEST_F(PoolsTest, TheDefaultIsOneResourceOverAllRails) {
  const auto pools = PoolsOf(TwoRailFabric());
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_EQ(pools[0]->spec.resource, "railhead.io/roce");
  EXPECT_EQ(pools[0]->spec.handoff, HandoffPolicy::kRequired);
  EXPECT_EQ(pools[0]->spec.delivery, Delivery::kCdi);
  std::vector<std::string> expected = vfs0_;
  expected.insert(expected.end(), vfs1_.begin(), vfs1_.end());
  EXPECT_EQ(IdsOf(*pools[0]), expected);
  EXPECT_EQ(pools[0]->Find(vfs0_[0])->rail, 0);
  EXPECT_EQ(pools[0]->Find(vfs1_[0])->rail, 1);
}

TEST_F(PoolsTest, RailsAreFoundByNameAddressAndPosition) {
  const auto pools = PoolsOf(R"({"version": 1, "rails": [
      {"name": "a", "pf": 1, "subnet": "10.0.0.0/24", "nodeBlock": 26},
      {"name": "b", "pf": ["nothing", "0000:43:00.0", "pf1"], "subnet": "10.0.1.0/24", "nodeBlock": 26}]})");
  ASSERT_EQ(pools.size(), 1U);
  ASSERT_NE(pools[0]->Find(vfs0_[0]), nullptr);
  EXPECT_EQ(pools[0]->Find(vfs0_[0])->rail, 1);
}

TEST_F(PoolsTest, OfAlternativesOnlyTheFirstThatTheNodeHas) {
  const auto pools = PoolsOf(R"({"version": 1, "rails": [
      {"name": "a", "pf": ["pf1", "pf0"], "subnet": "10.0.0.0/24", "nodeBlock": 26}]})");
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_EQ(IdsOf(*pools[0]), vfs1_);
}

TEST_F(PoolsTest, AnAbsentRailIsReportedAndSelectsNothing) {
  const auto fabric = ParseFabric(R"({"version": 1, "rails": [
      {"name": "gone", "pf": "pf9", "subnet": "10.0.0.0/24", "nodeBlock": 26}]})",
                                  "fabric.json");
  ASSERT_TRUE(fabric) << Describe(fabric.error());
  const auto inventory = Look();
  const auto resources = resources::ResourcesOfFabric(*fabric, *inventory);
  ASSERT_TRUE(resources);
  EXPECT_EQ(resources->absent_rails, std::vector<std::string>{"gone"});
  const auto pools = BuildPools(resources->specs, *inventory);
  ASSERT_EQ(pools.size(), 1U) << "the resource exists, with no device";
  EXPECT_TRUE(pools[0]->members.empty());
}

TEST_F(PoolsTest, MountIsRefusedForSoftRoce) {
  const auto fabric = ParseFabric(R"({"version": 1, "rails": [
      {"name": "a", "pf": "pf0", "subnet": "10.0.0.0/24", "nodeBlock": 26, "softRoce": true}],
      "pools": [{"resource": "railhead.io/roce", "rails": ["a"], "delivery": "mount"}]})",
                                  "fabric.json");
  // Either reader may be the one that refuses.
  if (!fabric) {
    EXPECT_NE(fabric.error().message.find("/pools/0"), std::string::npos) << fabric.error().message;
    return;
  }
  const auto resources = resources::ResourcesOfFabric(*fabric, *Look());
  ASSERT_FALSE(resources);
  EXPECT_NE(resources.error().message.find("/pools/0/delivery"), std::string::npos);
}

TEST_F(PoolsTest, APfThatTheHostNeedsIsInNoPool) {
  const auto fabric = ParseFabric(TwoRailFabric(), "fabric.json");
  ASSERT_TRUE(fabric);
  const auto inventory = Look({{"pf0v1"}});
  const auto resources = resources::ResourcesOfFabric(*fabric, *inventory);
  ASSERT_TRUE(resources);
  const auto pools = BuildPools(resources->specs, *inventory);
  EXPECT_EQ(pools[0]->Find(vfs0_[1]), nullptr);
  EXPECT_NE(pools[0]->Find(vfs0_[0]), nullptr);
}

class PfPoolsTest : public TwoRails {
 protected:
  PfPoolsTest() : TwoRails(0) {}
};

TEST_F(PfPoolsTest, WholePfsAreGivenOutUnlessTheHostNeedsThemOrTheyHaveVfs) {
  const std::string text = TwoRailFabric(
      R"(, "pools": [{"resource": "railhead.io/pf", "rails": ["rail0", "rail1"], "device": "pf"}])");
  EXPECT_EQ(IdsOf(*PoolsOf(text).front()), (std::vector<std::string>{kPf0, kPf1}));
  const auto fabric = ParseFabric(text, "fabric.json");
  ASSERT_TRUE(fabric);
  const auto inventory = Look({{"pf0"}});
  EXPECT_EQ(
      IdsOf(*BuildPools(resources::ResourcesOfFabric(*fabric, *inventory).value().specs, *inventory).front()),
      (std::vector<std::string>{kPf1}));
  (void)sysfs_.AddVfs(kPf1, 1);
  EXPECT_EQ(IdsOf(*PoolsOf(text).front()), (std::vector<std::string>{kPf0}));
}

TEST(ResourceName, IsWhatKubernetesTakes) {
  for (const char* good : {"railhead.io/roce", "intel.com/sriov_net-A.1", "a/b"}) {
    EXPECT_TRUE(resources::CheckResourceName(good)) << good;
  }
  for (const char* bad :
       {"roce", "/roce", "railhead.io/", "Railhead.io/x", "kubernetes.io/x", "a.kubernetes.io/x",
        "railhead.io/-x", "railhead.io/x_", "railhead..io/x", "railhead.io/a/b", "rail head/x"}) {
    EXPECT_FALSE(resources::CheckResourceName(bad)) << bad;
  }
}

}  // namespace
}  // namespace railhead::testing
