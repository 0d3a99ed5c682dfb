#include "deviceplugin/node/resources/preferred.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

// rails x vfs devices named rRvVV; rail R is on NUMA node R / 2.
resources::ResourcePool MakePool(int rails, int vfs) {
  resources::ResourcePool pool;
  for (int rail = 0; rail < rails; ++rail) {
    for (int vf = 0; vf < vfs; ++vf) {
      resources::PoolMember member;
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
  const resources::ResourcePool pool = MakePool(4, 8);
  Ids all = IdsOf(pool);
  std::mt19937 random(1);
  std::shuffle(all.begin(), all.end(), random);
  EXPECT_EQ(Prefer(pool, all, {}, 4), (Ids{"r0v00", "r1v00", "r2v00", "r3v00"}));
  EXPECT_EQ(Prefer(pool, all, {}, 6), (Ids{"r0v00", "r1v00", "r2v00", "r3v00", "r0v01", "r1v01"}));
  EXPECT_EQ(Prefer(pool, all, {}, 0), Ids{});
  EXPECT_EQ(Prefer(pool, all, {}, -1), Ids{});
}

TEST(Prefer, SkipsWhatIsTaken) {
  const resources::ResourcePool pool = MakePool(2, 4);
  EXPECT_EQ(Prefer(pool, {"r0v02", "r0v03", "r1v01", "r1v03"}, {}, 2), (Ids{"r0v02", "r1v01"}));
  // One rail is used up: the other gives a second.
  EXPECT_EQ(Prefer(pool, {"r1v01", "r1v03"}, {}, 2), (Ids{"r1v01", "r1v03"}));
}

TEST(Prefer, StaysOnTheNumaNodeWhereThatIsTheOnlyDifference) {
  const resources::ResourcePool pool = MakePool(4, 2);
  EXPECT_EQ(Prefer(pool, IdsOf(pool), {}, 2), (Ids{"r0v00", "r1v00"}));
  EXPECT_EQ(Prefer(pool, IdsOf(pool), {"r2v01"}, 2), (Ids{"r2v01", "r3v00"}));
  // Two nodes in any case: then the rails' order.
  EXPECT_EQ(Prefer(pool, IdsOf(pool), {"r2v01"}, 3), (Ids{"r2v01", "r0v00", "r1v00"}));
}

TEST(Prefer, AlwaysAnswers) {
  const resources::ResourcePool pool = MakePool(2, 2);
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
    const resources::ResourcePool pool = MakePool(rails, 1 + static_cast<int>(random() % 5));
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
        const resources::PoolMember* member = pool.Find(other);
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

PciAddress PfOf(int rail) {
  return *PciAddress::Parse("0000:" + std::to_string(10 + rail) + ":00.0");
}

resources::ResourcePool PoolWithPfs(int rails, int vfs) {
  resources::ResourcePool pool = MakePool(rails, vfs);
  for (resources::PoolMember& member : pool.members) member.function.pf = PfOf(member.rail);
  return pool;
}

// Two GPUs and two NICs on each switch, two switches.
resources::PreferHints OnTwoSwitches(const std::vector<int>& gpus) {
  resources::PreferHints hints;
  for (int rail = 0; rail < 4; ++rail) {
    for (const int gpu : gpus)
      hints.paths[PfOf(rail)].push_back(gpu / 2 == rail / 2 ? PciPath::kPix : PciPath::kSys);
  }
  return hints;
}

TEST(Prefer, NearTheAccelerators) {
  const resources::ResourcePool pool = PoolWithPfs(4, 2);
  const Ids all = IdsOf(pool);
  EXPECT_EQ(Prefer(pool, all, {}, 1, OnTwoSwitches({3})), Ids{"r2v00"});
  EXPECT_EQ(Prefer(pool, all, {}, 2, OnTwoSwitches({2, 3})), (Ids{"r2v00", "r3v00"}));
  // Not both beside the first one.
  EXPECT_EQ(Prefer(pool, all, {}, 2, OnTwoSwitches({0, 3})), (Ids{"r0v00", "r2v00"}));
  EXPECT_EQ(Prefer(pool, all, {"r1v01"}, 2, OnTwoSwitches({0, 3})), (Ids{"r1v01", "r2v00"}));
  // A rail of its own comes first.
  EXPECT_EQ(Prefer(pool, all, {}, 4, OnTwoSwitches({3})), (Ids{"r0v00", "r1v00", "r2v00", "r3v00"}));
}

TEST(Prefer, DevicesOnTheHostBeforeAttachedOnes) {
  const resources::ResourcePool pool = PoolWithPfs(4, 2);
  const Ids all = IdsOf(pool);
  resources::PreferHints hints;
  hints.still_attached = {"r0v00"};
  EXPECT_EQ(Prefer(pool, all, {}, 4, hints), (Ids{"r0v01", "r1v00", "r2v00", "r3v00"}));
  hints.still_attached = {"r0v00", "r0v01"};
  EXPECT_EQ(Prefer(pool, all, {}, 2, hints), (Ids{"r2v00", "r3v00"})) << "and on one NUMA node";
  EXPECT_EQ(Prefer(pool, all, {}, 4, hints), (Ids{"r0v00", "r1v00", "r2v00", "r3v00"}))
      << "but not at the price of a rail";
  hints = OnTwoSwitches({0});
  hints.still_attached = {"r0v00", "r0v01", "r1v00", "r1v01"};
  EXPECT_EQ(Prefer(pool, all, {}, 1, hints), Ids{"r2v00"}) << "waiting for a DEL may fail";
}

// The contract's order of importance, written down once more and without any cleverness.
using TotalCost = std::tuple<int, int, int, int, std::size_t, int, int>;
TotalCost CostOf(const resources::ResourcePool& pool, const Ids& chosen, const resources::PreferHints& hints,
                 std::size_t gpus) {
  std::map<int, int> on_rail;
  std::set<int> nodes;
  int still_attached = 0;
  int own = 0;
  int rails = 0;
  int indices = 0;
  std::vector<int> nearest(gpus, 5);
  for (const std::string& id : chosen) {
    const resources::PoolMember& member = *pool.Find(id);
    ++on_rail[member.rail];
    nodes.insert(*member.function.numa_node);
    still_attached += static_cast<int>(hints.still_attached.count(id));
    rails += member.rail;
    indices += member.function.vf_index;
    int best = gpus == 0 ? 0 : 5;
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
      const int path = static_cast<int>(hints.paths.at(member.function.pf).at(gpu));
      nearest[gpu] = std::min(nearest[gpu], path);
      best = std::min(best, path);
    }
    own += best;
  }
  int squares = 0;
  for (const auto& [rail, count] : on_rail) squares += count * count;
  int covered = 0;
  for (const int path : nearest) covered += path;
  return {squares, still_attached, covered, own, nodes.size(), rails, indices};
}

// Every subset of what is available, against the one that was chosen.
TEST(Prefer, IsTheBestOfAll) {
  std::mt19937 random(20261121);
  int choices = 0;
  for (int round = 0; round < 600; ++round) {
    const int rails = 1 + static_cast<int>(random() % 5);
    const resources::ResourcePool pool = PoolWithPfs(rails, 1 + static_cast<int>(random() % 3));
    Ids available = IdsOf(pool);
    std::shuffle(available.begin(), available.end(), random);
    available.resize(std::min<std::size_t>(1 + random() % available.size(), 11));
    const Ids must(available.begin(), available.begin() + static_cast<std::ptrdiff_t>(random() % 2));
    resources::PreferHints hints;
    for (const std::string& id : available) {
      if (random() % 4 == 0) hints.still_attached.insert(id);
    }
    const std::size_t gpus = random() % 4;
    for (int rail = 0; rail < rails; ++rail) {
      for (std::size_t gpu = 0; gpu < gpus; ++gpu)
        hints.paths[PfOf(rail)].push_back(static_cast<PciPath>(random() % 5));
      if (gpus == 0) hints.paths.clear();
    }
    const std::size_t size = must.size() + random() % (available.size() - must.size() + 1);
    const Ids chosen = Prefer(pool, available, must, static_cast<int>(size), hints);
    ASSERT_EQ(chosen.size(), size);
    const TotalCost cost = CostOf(pool, chosen, hints, gpus);
    for (unsigned subset = 0; subset < 1U << available.size(); ++subset) {
      Ids other;
      for (std::size_t i = 0; i < available.size(); ++i) {
        if ((subset >> i & 1U) != 0) other.push_back(available[i]);
      }
      const bool valid = other.size() == size && (must.empty() || (subset & 1U) != 0);
      if (!valid) continue;
      ++choices;
      ASSERT_LE(cost, CostOf(pool, other, hints, gpus)) << "round " << round;
    }
  }
  EXPECT_GT(choices, 5'000);
}

}  // namespace
}  // namespace railhead::testing
