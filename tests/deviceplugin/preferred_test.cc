#include "deviceplugin/pools/preferred.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/deviceplugin/two_rails.h"

namespace railhead::testing {
namespace {

// rails x vfs devices named rRvVV; rail R is on NUMA node R / 2.
ResourcePool MakePool(int rails, int vfs) {
  ResourcePool pool;
  for (int rail = 0; rail < rails; ++rail) {
    for (int vf = 0; vf < vfs; ++vf) {
      PoolMember member;
      member.function.id = "r" + std::to_string(rail) + "v" + (vf < 10 ? "0" : "") + std::to_string(vf);
      member.function.vf_index = vf;
      member.function.numa_node = rail / 2;
      member.rail = rail;
      pool.members.push_back(member);
    }
  }
  return pool;
}

using Ids = std::vector<std::string>;

TEST(Prefer, TakesTheLowestVfOfEachRail) {
  const ResourcePool pool = MakePool(4, 8);
  Ids all = IdsOf(pool);
  std::mt19937 random(1);
  std::shuffle(all.begin(), all.end(), random);
  EXPECT_EQ(Prefer(pool, all, {}, 4), (Ids{"r0v00", "r1v00", "r2v00", "r3v00"}));
  EXPECT_EQ(Prefer(pool, all, {}, 6), (Ids{"r0v00", "r1v00", "r2v00", "r3v00", "r0v01", "r1v01"}));
  EXPECT_EQ(Prefer(pool, all, {}, 0), Ids{});
  EXPECT_EQ(Prefer(pool, all, {}, -1), Ids{});
}

TEST(Prefer, SkipsWhatIsTaken) {
  const ResourcePool pool = MakePool(2, 4);
  EXPECT_EQ(Prefer(pool, {"r0v02", "r0v03", "r1v01", "r1v03"}, {}, 2), (Ids{"r0v02", "r1v01"}));
  // One rail is used up: the other gives a second.
  EXPECT_EQ(Prefer(pool, {"r1v01", "r1v03"}, {}, 2), (Ids{"r1v01", "r1v03"}));
}

TEST(Prefer, StaysOnTheNumaNodeWhereThatIsTheOnlyDifference) {
  const ResourcePool pool = MakePool(4, 2);
  EXPECT_EQ(Prefer(pool, IdsOf(pool), {}, 2), (Ids{"r0v00", "r1v00"}));
  EXPECT_EQ(Prefer(pool, IdsOf(pool), {"r2v01"}, 2), (Ids{"r2v01", "r3v00"}));
  // But a new rail comes before the same node.
  EXPECT_EQ(Prefer(pool, IdsOf(pool), {"r2v01"}, 3), (Ids{"r2v01", "r3v00", "r0v00"}));
}

TEST(Prefer, AlwaysAnswers) {
  const ResourcePool pool = MakePool(2, 2);
  EXPECT_EQ(Prefer(pool, {}, {}, 3), Ids{});
  EXPECT_EQ(Prefer(pool, {"stranger", "r1v01"}, {}, 1), Ids{"r1v01"});
  EXPECT_EQ(Prefer(pool, {"stranger"}, {}, 1), Ids{"stranger"});
  EXPECT_EQ(Prefer(pool, {"r0v00", "r0v00"}, {"r0v00", "r0v00"}, 2), Ids{"r0v00"});
  EXPECT_EQ(Prefer(pool, {"r0v00"}, {"unknown"}, 2), (Ids{"unknown", "r0v00"}));
  EXPECT_EQ(Prefer(pool, {}, {"r0v00", "r1v00"}, 1), Ids{"r0v00"});
}

// What the contract promises, on random requests.
TEST(Prefer, Properties) {
  std::mt19937 random(20240711);
  for (int round = 0; round < 2000; ++round) {
    const int rails = 1 + static_cast<int>(random() % 5);
    const ResourcePool pool = MakePool(rails, 1 + static_cast<int>(random() % 5));
    Ids available = IdsOf(pool);
    std::shuffle(available.begin(), available.end(), random);
    available.resize(random() % (available.size() + 1));
    const Ids must(
        available.begin(),
        available.begin() + static_cast<std::ptrdiff_t>(available.empty() ? 0 : random() % available.size()));
    const std::size_t size = must.size() + random() % (available.size() - must.size() + 2);
    const Ids chosen = Prefer(pool, available, must, static_cast<int>(size));

    const std::set<std::string> unique(chosen.begin(), chosen.end());
    ASSERT_EQ(unique.size(), chosen.size());
    ASSERT_EQ(chosen.size(), std::min(size, available.size()));
    for (const std::string& id : must) ASSERT_TRUE(unique.count(id) != 0);
    std::map<int, int> on_rail;
    for (const std::string& id : chosen) {
      ASSERT_NE(std::find(available.begin(), available.end(), id), available.end());
      ++on_rail[pool.Find(id)->rail];
    }
    for (const std::string& id : available) {
      if (unique.count(id) != 0) continue;
      const int rail = pool.Find(id)->rail;
      for (const std::string& other : chosen) {
        if (std::find(must.begin(), must.end(), other) != must.end()) continue;
        const PoolMember* member = pool.Find(other);
        // Left out although a fuller rail gave a device of our choice: not spread.
        ASSERT_LE(on_rail[member->rail], on_rail[rail] + 1) << id << " left out for " << other;
        // Left out although it has a lower index than one chosen on its rail.
        if (member->rail == rail) {
          ASSERT_LT(member->function.vf_index, pool.Find(id)->function.vf_index);
        }
      }
    }
    Ids shuffled = available;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    ASSERT_EQ(Prefer(pool, shuffled, must, static_cast<int>(size)), chosen) << "depends on kubelet's order";
  }
}

}  // namespace
}  // namespace railhead::testing
