// The fabric that a node may have while pods use some of its rails: properties over random fabrics, and the
// cases that these do not show.
#include "deviceplugin/services/fabric_follow/compose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cni/fabric/fabric_shape.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "tests/support/seed.h"

namespace railhead::testing {
namespace {

using fabric_follow::Compose;
using fabric_follow::Composition;
using fabric_follow::PendingChange;
using fabric_follow::PendingKind;
using fabric_follow::PendingWord;
using fabric_follow::RailUse;
using Json = nlohmann::ordered_json;

constexpr int kRails = 6;

std::string NameOfRail(int i) {
  return "rail" + std::to_string(i);
}

class AnyFabric {
 public:
  explicit AnyFabric(std::uint64_t seed) : random_(seed) {}

  std::uint64_t Below(std::uint64_t end) {
    return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_);
  }
  bool Maybe() { return Below(2) == 0; }

  // A valid one: some rails in any order. A rail that states its table has one that no place implies.
  std::string Make() {
    Json fabric{{"version", 1}, {"rails", Json::array()}};
    std::vector<int> order{0, 1, 2, 3, 4, 5};
    std::ranges::shuffle(order, random_);
    order.resize(1 + Below(kRails));
    for (const int i : order) fabric["rails"].push_back(MakeRail(i));
    if (Maybe()) fabric["rdmaMode"] = Maybe() ? "shared" : "exclusive";
    if (Maybe()) fabric["pools"] = MakePools(order);
    if (Maybe()) fabric["nodes"]["n1"] = Below(9);
    // As a node has it whose base has groups: now of one group, now of another one.
    if (Maybe()) {
      const char* indices = Maybe() ? "0-7" : "8-15";
      fabric["node"] = {{"name", "n1"}, {"indices", indices}};
      for (Json& rail : fabric["rails"]) {
        if (Maybe()) rail["indices"] = indices;
      }
    }
    return fabric.dump(static_cast<int>(Below(3)));
  }

  RailUse MakeUse() {
    RailUse use;
    for (int i = 0; i < kRails; ++i) {
      for (std::uint64_t pod = Below(3); pod > 0; --pod)
        use.pods[NameOfRail(i)].insert("train/pod" + std::to_string(pod));
    }
    if (Below(8) == 0) use.unreadable.insert("an attachment");
    if (Maybe()) use.index = static_cast<int>(Below(16));
    return use;
  }

 private:
  Json MakeRail(int i) {
    Json rail{{"name", NameOfRail(i)}, {"pf", "pf" + std::to_string(i)}};
    const std::string net = "10." + std::to_string(100 + i);
    if (Maybe()) rail["vlan"] = 100 + Below(2);
    if (Maybe()) rail["mtu"] = Maybe() ? 4200 : 9000;
    rail["subnet"] = net + ".0.0/16";
    if (Maybe()) rail["nodeBlock"] = 24;
    if (Maybe()) rail["gateway"] = net + ".255.254";
    if (Maybe()) rail["exclude"] = Json::array({net + ".0." + std::to_string(1 + Below(2))});
    if (Maybe()) rail["expectedSwitches"] = "leaf-" + std::to_string(Below(2));
    if (Below(4) == 0) rail["table"] = 300 + i;
    return rail;
  }

  Json MakePools(const std::vector<int>& rails) {
    Json pools = Json::array();
    for (const char* resource : {kDefaultResource, "other.io/roce"}) {
      if (!pools.empty() && Maybe()) break;
      Json pool = Json::object();
      pool["resource"] = resource;
      if (Maybe()) pool["rails"] = Json::array({NameOfRail(rails.front())});
      if (Maybe()) pool["binding"] = Maybe() ? "late" : "early";
      pools.push_back(pool);
    }
    return pools;
  }

  std::mt19937_64 random_;
};

// The keys of a rail, with or without those that only new pods follow.
Json KeysOf(const Rail& rail, bool all) {
  Json keys = ToJson(rail);
  keys.erase("index");          // a rail keeps it for its new pods: ABusyRailKeepsItsPartOfTheSubnet
  keys.erase("fabricSubnets");  // of other nodes: ABusyRailGetsTheRoutesToNewGroups
  for (const char* key : {"exclude", "expectedSwitches", "nodeRanges", "probeAddresses"}) {
    if (!all) keys.erase(key);
  }
  return keys;
}

Json WithoutTable(const Rail& rail) {
  Json keys = KeysOf(rail, true);
  keys.erase("table");
  return keys;
}

std::set<std::string> NamesIn(const Fabric& fabric) {
  std::set<std::string> names;
  for (const Rail& rail : fabric.rails) names.insert(rail.name);
  return names;
}

class ComposeTest : public ::testing::Test {
 protected:
  void Draw() {
    present_text_ = any_.Make();
    wanted_text_ = any_.Make();
    use_ = any_.MakeUse();
    SCOPED_TRACE(present_text_ + "\n" + wanted_text_);
    const auto composition = Compose(present_text_, wanted_text_, use_);
    ASSERT_TRUE(composition) << Describe(composition.error());
    composition_ = *composition;
    present_ = Parsed(present_text_);
    wanted_ = Parsed(wanted_text_);
    result_ = Parsed(composition_.text);
  }
  static Fabric Parsed(const std::string& text) {
    auto fabric = ParseFabric(text, "fabric");
    EXPECT_TRUE(fabric) << Describe(fabric.error()) << "\n" << text;
    return fabric ? *std::move(fabric) : Fabric{};
  }
  [[nodiscard]] bool IsBusy(const std::string& rail) const { return !use_.Of(rail).empty(); }
  [[nodiscard]] const PendingChange* Pending(PendingKind kind, const std::string& name) const {
    const auto found = std::ranges::find_if(composition_.pending, [&](const PendingChange& change) {
      return change.kind == kind && change.name == name;
    });
    return found == composition_.pending.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::string All() const {
    return "present " + present_text_ + "\nwanted " + wanted_text_ + "\nresult " + composition_.text;
  }

  AnyFabric any_{testing::Seed()};
  std::string present_text_;
  std::string wanted_text_;
  RailUse use_;
  Composition composition_;
  Fabric present_;
  Fabric wanted_;
  Fabric result_;
};

constexpr int kDraws = 500;

TEST_F(ComposeTest, ABusyRailKeepsEveryKeyThatItsPodsHave) {
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(Draw());
    for (const Rail& before : present_.rails) {
      if (!IsBusy(before.name)) continue;
      const Rail* now = result_.FindRail(before.name);
      ASSERT_NE(now, nullptr) << before.name << " went\n" << All();
      const bool waits = Pending(PendingKind::kRail, before.name) != nullptr;
      ASSERT_EQ(KeysOf(*now, waits), KeysOf(before, waits)) << All();
      if (waits) continue;
      ASSERT_EQ(WithoutTable(*now), WithoutTable(*wanted_.FindRail(before.name))) << All();
    }
  }
}

// Though the node has or claims another index.
TEST_F(ComposeTest, ABusyRailKeepsItsPartOfTheSubnet) {
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(Draw());
    if (!use_.index) continue;
    const auto indices = [](const Fabric& fabric) {
      return fabric.of_node ? fabric.of_node->indices : std::nullopt;
    };
    for (const Rail& before : present_.rails) {
      if (Pending(PendingKind::kRail, before.name) == nullptr) continue;
      const Rail* now = result_.FindRail(before.name);
      const int later = indices(present_) == indices(wanted_) ? *use_.index : *use_.index + 8;
      ASSERT_EQ(now->RangesOf("n1", later), before.RangesOf("n1", use_.index)) << All();
    }
  }
}

TEST_F(ComposeTest, AFreeRailIsAsWanted) {
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(Draw());
    std::set<std::string> expected = NamesIn(wanted_);
    for (const std::string& name : NamesIn(present_)) {
      if (IsBusy(name)) expected.insert(name);
    }
    ASSERT_EQ(NamesIn(result_), expected) << All();
    for (const Rail& rail : wanted_.rails) {
      if (present_.FindRail(rail.name) != nullptr && IsBusy(rail.name)) continue;
      const Rail* now = result_.FindRail(rail.name);
      ASSERT_EQ(WithoutTable(*now), WithoutTable(rail)) << All();
    }
    ASSERT_EQ(result_.nodes, wanted_.nodes);
  }
}

TEST_F(ComposeTest, WhatWaitsIsBusyAndDiffers) {
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(Draw());
    for (const PendingChange& change : composition_.pending) {
      ASSERT_FALSE(change.rails.empty());
      ASSERT_FALSE(change.pods.empty());
      for (const std::string& rail : change.rails) ASSERT_TRUE(IsBusy(rail)) << All();
      if (change.kind != PendingKind::kRail) continue;
      const Rail* after = wanted_.FindRail(change.name);
      ASSERT_EQ(change.change == PendingWord::kRemoved, after == nullptr) << All();
      if (after == nullptr) continue;
      ASSERT_NE(KeysOf(*after, false), KeysOf(*present_.FindRail(change.name), false)) << All();
    }
  }
}

TEST_F(ComposeTest, TheNodesModeAndThePoolsIdsStay) {
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(Draw());
    const bool any = std::ranges::any_of(present_.rails, [&](const Rail& one) { return IsBusy(one.name); });
    ASSERT_EQ(result_.rdma_exclusive, any ? present_.rdma_exclusive : wanted_.rdma_exclusive) << All();
    for (const Pool& before : present_.pools) {
      const auto now = std::ranges::find(result_.pools, before.resource, &Pool::resource);
      if (now == result_.pools.end()) continue;
      const auto after = std::ranges::find(wanted_.pools, before.resource, &Pool::resource);
      ASSERT_NE(after, wanted_.pools.end()) << All();
      const bool busy = std::ranges::any_of(before.rails, [&](const auto& rail) { return IsBusy(rail); });
      ASSERT_EQ(now->late, busy ? before.late : after->late) << All();
    }
  }
}

TEST_F(ComposeTest, TheSecondCompositionChangesNothing) {
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(Draw());
    const auto again = Compose(composition_.text, wanted_text_, use_);
    ASSERT_TRUE(again) << Describe(again.error()) << "\n" << All();
    ASSERT_EQ(again->text, composition_.text) << All();
    ASSERT_EQ(again->pending.size(), composition_.pending.size()) << All();
  }
}

TEST_F(ComposeTest, WithoutABusyRailTheWantedTextIsInForce) {
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(Draw());
    for (const std::string& from : {present_text_, composition_.text}) {
      const auto free = Compose(from, wanted_text_, {});
      ASSERT_TRUE(free) << Describe(free.error());
      ASSERT_EQ(free->text, wanted_text_);
      ASSERT_TRUE(free->pending.empty());
    }
  }
}

// Whatever order the pods end in.
TEST_F(ComposeTest, TheLastFreeRailLeavesTheWantedText) {
  for (int i = 0; i < kDraws / 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(Draw());
    std::string now = composition_.text;
    use_.unreadable.clear();
    while (!use_.pods.empty()) {
      use_.pods.erase(use_.pods.begin());
      const auto next = Compose(now, wanted_text_, use_);
      ASSERT_TRUE(next) << Describe(next.error()) << "\n" << All();
      now = next->text;
    }
    const auto last = Compose(now, wanted_text_, use_);
    ASSERT_TRUE(last);
    ASSERT_EQ(last->text, wanted_text_);
  }
}

std::string RailText(const std::string& name, const std::string& pf, const std::string& more = "") {
  return R"({"name": ")" + name + R"(", "pf": ")" + pf + "\"" + more + "}";
}

std::string FabricText(const std::vector<std::string>& rails) {
  return R"({"version": 1, "rails": [)" + Join(rails, ",") + "]}";
}

RailUse UseOf(const std::string& rail) {
  return {{{rail, {"train/worker-0"}}}, {}, {}};
}

// The rail by its new name would get the PF, and new pods the new definition beside the old one.
TEST(ComposeErrorTest, ARailThatTakesABusyRailsPfIsRefused) {
  const std::string present = FabricText({RailText("a", "pf0"), RailText("b", "pf1")});
  for (const std::string& wanted : {FabricText({RailText("c", "pf0"), RailText("b", "pf1")}),
                                    FabricText({RailText("a", "pf1"), RailText("b", "pf0")})}) {
    const auto refused = Compose(present, wanted, UseOf("a"));
    ASSERT_FALSE(refused) << refused->text;
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
    EXPECT_EQ(refused.error().hint, "drain it: railctl drain a");
    EXPECT_EQ(Compose(present, wanted, {})->text, wanted);
  }
}

TEST(ComposePfTest, AnUnreadableAttachmentIsNoPod) {
  JournalScan scan;
  scan.unreadable.emplace_back().key = {"rails", "c1", "net1"};
  PendingChange change{
      PendingKind::kRail, "a", PendingWord::kChanged, {"a"}, fabric_follow::RailsInUse(scan).Of("a")};
  const std::string unreadable = *change.pods.begin();
  EXPECT_EQ(fabric_follow::TextOf(change), "a is in use by " + unreadable);
  change.pods.insert("train/x");
  EXPECT_EQ(fabric_follow::TextOf(change), "a is in use by 1 pod, " + unreadable);
}

TEST(ComposeErrorTest, ATableThatABusyRailHasIsRefused) {
  const std::string present = FabricText({RailText("a", "pf0"), RailText("b", "pf1")});
  const std::string wanted =
      FabricText({RailText("a", "pf0", R"(, "table": 200)"), RailText("b", "pf1", R"(, "table": 100)")});
  const auto refused = Compose(present, wanted, UseOf("a"));
  ASSERT_FALSE(refused) << refused->text;
  EXPECT_NE(refused.error().message.find("/table"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(refused.error().hint, "it does not fit the rails in use; drain them: a");
}

// The wanted rails and pools are valid, but not with the pool's `device` that stays.
TEST(ComposeErrorTest, APoolThatDoesNotFitTheRestIsRefusedUntilItsRailIsFree) {
  const auto with_pool = [](const std::string& rails, const std::string& device) {
    return R"({"version": 1, "rails": [)" + rails +
           R"(], "pools": [{"resource": "railhead.io/roce", "device": ")" + device + R"("}]})";
  };
  const std::string present = with_pool(RailText("a", "pf0") + "," + RailText("b", "pf1"), "pf");
  const std::string wanted =
      with_pool(RailText("a", "pf0") + "," + RailText("b", "pf1", R"(, "vlan": 5)"), "vf");
  const auto refused = Compose(present, wanted, UseOf("a"));
  ASSERT_FALSE(refused) << refused->text;
  EXPECT_NE(refused.error().hint.find("drain them: a"), std::string::npos) << refused.error().hint;
  EXPECT_EQ(Compose(present, wanted, {})->text, wanted);
}

TEST(ComposeErrorTest, AnInvalidFabricIsRefused) {
  const std::string good = FabricText({RailText("a", "pf0")});
  EXPECT_FALSE(Compose("{", good, {}));
  const auto refused = Compose(good, R"({"version": 1, "rails": [{"name": "a", "vlan": 9999}]})", {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("/rails/0/"), std::string::npos) << refused.error().message;
}

// A new place in the list gives a rail another table. Its pods do not notice.
TEST(ComposeTablesTest, ARailThatOnlyMovesDoesNotWait) {
  const std::string present = FabricText({RailText("a", "pf0"), RailText("b", "pf1"), RailText("c", "pf2")});
  const auto moved = Compose(present, FabricText({RailText("c", "pf2"), RailText("d", "pf3")}), UseOf("c"));
  ASSERT_TRUE(moved) << Describe(moved.error());
  EXPECT_TRUE(moved->pending.empty());
  const auto fabric = ParseFabric(moved->text, "moved");
  ASSERT_TRUE(fabric) << moved->text;
  EXPECT_EQ(fabric->FindRail("c")->table, 102U);
  EXPECT_EQ(fabric->FindRail("d")->table, 101U);
}

TEST(RailUseTest, AnAttachmentThatCannotBeReadMayHaveAnyRail) {
  RailUse use = UseOf("a");
  EXPECT_TRUE(use.Of("b").empty());
  use.unreadable.insert("x");
  EXPECT_EQ(use.Of("b"), std::set<std::string>{"x"});
  EXPECT_EQ(use.Of("a").size(), 2U);
}

TEST(RailUseTest, AttachmentsCountAndResetsDoNot) {
  JournalScan scan;
  JournalEntry entry;
  entry.key = {"roce", "0123456789abcdef", "net1"};
  entry.devices.resize(2);
  entry.devices[0].rail = "rail0";
  scan.entries.push_back(entry);
  entry.cni_args = {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", "worker-0"}};
  scan.entries.push_back(entry);
  entry.key = ResetKey("0000:43:00.1");
  entry.devices[0].rail = "rail1";
  scan.entries.push_back(entry);
  scan.unreadable.push_back({{"roce", "c9", "net1"}, "/x", {}, {}});
  const RailUse use = fabric_follow::RailsInUse(scan);
  ASSERT_EQ(use.pods.size(), 1U);
  EXPECT_EQ(use.pods.at("rail0"), (std::set<std::string>{"container 0123456789ab", "train/worker-0"}));
  EXPECT_EQ(use.unreadable, std::set<std::string>{"the unreadable attachment c9/roce@net1"});
}

TEST(PendingTextTest, NamesRailsAndCountsPods) {
  PendingChange change{PendingKind::kRail, "rail3", PendingWord::kChanged, {"rail3"}, {"a/b"}};
  EXPECT_EQ(TextOf(change), "rail3 is in use by 1 pod");
  change = {PendingKind::kRdmaMode, "rdmaMode", PendingWord::kChanged, {"rail1", "rail3"}, {"a/b", "a/c"}};
  EXPECT_EQ(TextOf(change), "rdmaMode: rail1, rail3 are in use by 2 pods");
  EXPECT_EQ(fabric_follow::RailsOf({change}), (std::set<std::string>{"rail1", "rail3"}));
}

}  // namespace
}  // namespace railhead::testing
