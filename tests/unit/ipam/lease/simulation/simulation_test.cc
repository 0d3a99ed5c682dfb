// Two nodes never have the same address, whatever happens. And the checker finds violations.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ipam/support.h"
#include "tests/support/lease/memory_store.h"
#include "tests/support/lease/node.h"
#include "tests/support/seed.h"
#include "tests/unit/ipam/lease/simulation/checker.h"

namespace railhead::testing {
namespace {

namespace fs = std::filesystem;
using Kind = HistoryEvent::Kind;

// A cluster of nodes on one cluster store, with random but repeatable faults. Requests and answers are lost,
// requests arrive late, and nodes are cut off. Daemons are killed within a step, and machines reboot. Disks
// are wiped, or put back while a machine is off. The cluster store is restored from a backup. Clocks run at
// different speeds.
// Ownership: a World owns its nodes. Threads: one.
struct WorldOptions {
  int nodes = 5;
  std::uint64_t seed = 1;
  std::uint64_t longest_cut_ms = 2'000'000;  // less than reclaimSeconds: strict
  bool restores = true;
  double kills = 1;                    // of daemons and machines: a daemon that is new knows of no silence
  std::uint64_t longest_pause_ms = 0;  // of machines that are paused; 0: none is
  bool two_creators = false;           // a broken cluster store: what the checker has to find
};

class World {
 public:
  explicit World(const WorldOptions& options);

  void Run(std::uint64_t ms);

  [[nodiscard]] const std::vector<HistoryEvent>& history() const { return history_; }
  [[nodiscard]] std::uint64_t reuse_delay_ms() const { return 100'000; }
  // How often each thing happened, so that tests can check that it did.
  [[nodiscard]] const std::map<std::string, int>& counts() const { return counts_; }

 private:
  struct Machine {
    std::unique_ptr<TestNode> node;
    double rate = 1;                  // of its clock
    std::uint64_t step_at_ms = 0;     // its own clock
    std::uint64_t cut_until_ms = 0;   // true time
    std::uint64_t down_until_ms = 0;  // the daemon
    std::uint64_t paused_until_ms = 0;
    std::uint64_t heard_ms = 0;  // when its record changed last
    std::string revision;
    bool excused = false;
    std::map<std::string, std::string> pods;  // name -> address
    int next_pod = 0;
  };
  struct Killed {};

  void Tick(std::uint64_t ms);
  void MachineTick(Machine& machine, std::uint64_t ms);
  void StepDaemon(Machine& machine);
  void Pods(Machine& machine);
  void Trouble(Machine& machine);
  void Reboot(Machine& machine);
  void StartPod(Machine& machine);
  void EndPods(Machine& machine);
  void ClusterTrouble();
  void Listen(Machine& machine);
  MemoryStore::Fault FaultFor(Machine& machine);
  void MaybeKilled();
  bool Chance(double probability);
  std::uint64_t Below(std::uint64_t limit) { return random_() % limit; }
  void Note(Machine& machine, HistoryEvent::Kind kind, const std::string& address);

  WorldOptions options_;
  std::mt19937_64 random_;
  MemoryCluster cluster_;
  std::vector<Machine> machines_;
  std::uint64_t now_ms_ = 0;
  std::uint64_t calm_until_ms_ = 0;  // after a restore: all nodes can reach the cluster store
  std::vector<MemoryCluster::Records> backups_;
  std::map<std::string, std::string> disks_;  // copies of stores, by node
  std::vector<HistoryEvent> history_;
  std::map<std::string, int> counts_;
};

constexpr std::uint64_t kRenewMs = 60'000;
constexpr std::uint64_t kReclaimMs = 3'600'000;
constexpr std::uint64_t kTickMs = 10'000;
constexpr std::size_t kMostPods = 20;
constexpr double kFlaky = 0.03;
constexpr double kKilledWithin = 0.002;

const std::string kSubnet = "10.7.0.0/24";

World::World(const WorldOptions& options) : options_(options), random_(options.seed) {
  for (int i = 0; i < options_.nodes; ++i) {
    Machine machine;
    machine.node = std::make_unique<TestNode>(cluster_, "n" + std::to_string(i), TestPools{}, random_());
    machine.rate = 0.998 + 0.001 * static_cast<double>(Below(5));
    machine.down_until_ms = Below(60'000);
    machines_.push_back(std::move(machine));
  }
  for (Machine& machine : machines_) {
    machine.node->store().fault = [this, &machine] { return FaultFor(machine); };
    machine.node->store().changed = [this] { MaybeKilled(); };
  }
  cluster_.two_creators = options_.two_creators;
}

bool World::Chance(double probability) {
  return static_cast<double>(Below(1'000'000)) < probability * 1'000'000;
}

void World::MaybeKilled() {
  if (!Chance(kKilledWithin * options_.kills)) return;
  ++counts_["killed within a step"];
  throw Killed{};
}

MemoryStore::Fault World::FaultFor(Machine& machine) {
  using Fault = MemoryStore::Fault;
  MaybeKilled();
  if (now_ms_ < machine.cut_until_ms) return Fault::kUnavailable;
  if (now_ms_ < calm_until_ms_ || !Chance(kFlaky)) return Fault::kNone;
  ++counts_["request or answer lost"];
  constexpr std::array<Fault, 3> kFaults = {Fault::kTimeoutBefore, Fault::kTimeoutAfter, Fault::kDelayed};
  return kFaults.at(Below(kFaults.size()));
}

void World::Note(Machine& machine, HistoryEvent::Kind kind, const std::string& address) {
  history_.push_back({now_ms_, kind, machine.node->name(), address});
}

void World::Run(std::uint64_t ms) {
  for (const std::uint64_t end = now_ms_ + ms; now_ms_ < end;) Tick(1 + Below(kTickMs));
}

void World::Tick(std::uint64_t ms) {
  now_ms_ += ms;
  if (options_.restores) ClusterTrouble();
  for (Machine& machine : machines_) MachineTick(machine, ms);
}

void World::MachineTick(Machine& machine, std::uint64_t ms) {
  if (now_ms_ < machine.paused_until_ms) {
    machine.node->PassPaused(ms);
    return Listen(machine);
  }
  // Pods have waited for the machine, and railheadd does not know about the pause yet.
  if (std::exchange(machine.paused_until_ms, 0) != 0) {
    for (int pod = 0; pod < 5; ++pod) StartPod(machine);
  }
  machine.node->Pass(static_cast<std::uint64_t>(static_cast<double>(ms) * machine.rate));
  if (Chance(0.1)) machine.node->store().DeliverDelayed();
  Trouble(machine);
  if (!machine.node->running() && now_ms_ >= machine.down_until_ms) {
    machine.node->StartDaemon();
    machine.step_at_ms = 0;
  }
  StepDaemon(machine);
  Pods(machine);
  Listen(machine);
}

void World::StepDaemon(Machine& machine) {
  for (int steps = 0; machine.node->running() && steps < 10; ++steps) {
    if (machine.node->now().boottime_ms < machine.step_at_ms) return;
    try {
      const auto outcome = machine.node->Step();
      machine.step_at_ms = machine.node->now().boottime_ms + static_cast<std::uint64_t>(outcome.wait.count());
      for (const ipam::LeaseEvent& event : outcome.events) ++counts_[std::string(NameOf(event.kind))];
    } catch (const Killed&) {
      machine.node->KillDaemon();
      machine.down_until_ms = now_ms_ + Below(10'000);
    }
  }
}

void World::Pods(Machine& machine) {
  // Bursts, then quiet: blocks are allocated and returned.
  const bool busy = (now_ms_ / 1'000'000 + machine.node->name().back()) % 2 == 0;
  if (machine.pods.size() < kMostPods && Chance(busy ? 0.2 : 0.01)) StartPod(machine);
  if (!machine.pods.empty() && Chance(busy ? 0.05 : 0.2)) {
    auto pod = machine.pods.begin();
    std::advance(pod, static_cast<std::ptrdiff_t>(Below(machine.pods.size())));
    Note(machine, HistoryEvent::Kind::kRelease, pod->second);
    (void)machine.node->Release(pod->first);
    machine.pods.erase(pod);
  }
  // A step is asked for when the store has changed.
  if (Chance(0.1)) machine.step_at_ms = std::min(machine.step_at_ms, machine.node->now().boottime_ms);
}

void World::StartPod(Machine& machine) {
  const std::string name = "pod" + std::to_string(machine.next_pod++);
  const auto given = machine.node->Allocate(name, kSubnet);
  ++counts_[given ? "address given" : "address refused"];
  if (!given) return;
  machine.pods[name] = given->address.ToString();
  Note(machine, HistoryEvent::Kind::kHold, machine.pods[name]);
}

void World::EndPods(Machine& machine) {
  for (const auto& [name, address] : machine.pods) Note(machine, HistoryEvent::Kind::kRelease, address);
  machine.pods.clear();
}

void World::Reboot(Machine& machine) {
  ++counts_["reboot"];
  EndPods(machine);
  const fs::path disk = machine.node->scratch().StorePath();
  const fs::path copy = disk.string() + ".copy";
  machine.node->Reboot();
  if (fs::exists(copy) && Chance(0.3)) {
    ++counts_["disk put back"];
    fs::copy_file(copy, disk, fs::copy_options::overwrite_existing);
  } else if (Chance(0.1)) {
    ++counts_["disk wiped"];
    fs::remove(disk);
  }
  // The reuse delay of addresses that pods of the boot before held begins now.
  auto store = ipam::AddressStore::OpenExisting(machine.node->scratch().root(), machine.node->clocks());
  if (store && *store) (void)(*store)->ReleaseWhere([](const ipam::AddressRecord&) { return true; });
  machine.down_until_ms = now_ms_ + Below(now_ms_ < calm_until_ms_ ? 5'000 : 60'000);
}

void World::Trouble(Machine& machine) {
  if (Chance(0.002 * options_.kills)) {
    ++counts_["daemon killed"];
    machine.node->KillDaemon();
    machine.down_until_ms = now_ms_ + Below(now_ms_ < calm_until_ms_ ? 5'000 : 60'000);
  }
  if (Chance(0.0005 * options_.kills)) Reboot(machine);
  if (Chance(0.0008) && now_ms_ >= calm_until_ms_ && now_ms_ >= machine.cut_until_ms) {
    ++counts_["cut off"];
    machine.cut_until_ms = now_ms_ + Below(options_.longest_cut_ms);
  }
  if (options_.longest_pause_ms != 0 && Chance(0.0005)) {
    ++counts_["paused"];
    machine.paused_until_ms = now_ms_ + Below(options_.longest_pause_ms);
  }
  const fs::path disk = machine.node->scratch().StorePath();
  if (Chance(0.001) && fs::exists(disk))
    fs::copy_file(disk, disk.string() + ".copy", fs::copy_options::overwrite_existing);
}

// The guarantee for a restored cluster store asks that every node reaches it soon.
void World::ClusterTrouble() {
  if (Chance(0.002)) {
    backups_.push_back(cluster_.records());
    if (backups_.size() > 5) backups_.erase(backups_.begin());
  }
  if (backups_.empty() || !Chance(0.002)) return;
  ++counts_["cluster store put back"];
  cluster_.Restore(backups_.at(Below(backups_.size())));
  calm_until_ms_ = now_ms_ + 4 * kRenewMs;
  for (Machine& machine : machines_) {
    machine.cut_until_ms = 0;
    machine.down_until_ms = std::min(machine.down_until_ms, now_ms_ + 5'000);
  }
}

void World::Listen(Machine& machine) {
  const auto record = cluster_.Get(ipam::LeaseKey::Node(machine.node->name()));
  const std::string revision = record && *record ? (*record)->revision : "";
  if (revision != machine.revision) {
    machine.revision = revision;
    machine.heard_ms = now_ms_;
    machine.excused = false;
  }
  if (machine.excused || now_ms_ < machine.heard_ms + kReclaimMs * 9 / 10) return;
  machine.excused = true;
  ++counts_["silent for reclaimSeconds"];
  Note(machine, HistoryEvent::Kind::kExcuse, "");
}

constexpr std::uint64_t kHour = 3'600'000;

// RAILHEAD_TEST_HOURS: of simulated time, for a longer search.
std::uint64_t Hours(std::uint64_t usual) {
  const char* given = std::getenv("RAILHEAD_TEST_HOURS");
  return kHour * (given != nullptr ? std::strtoull(given, nullptr, 10) : usual);
}

void PrintCounts(const World& world) {
  for (const auto& [what, count] : world.counts()) std::printf("  %-28s %d\n", what.c_str(), count);
}

void ExpectSound(const World& world) {
  const auto findings = CheckHistory(world.history(), world.reuse_delay_ms());
  EXPECT_EQ(findings.size(), 0U);
  for (std::size_t i = 0; i < findings.size() && i < 10; ++i) ADD_FAILURE() << findings[i];
}

void ExpectHappened(const World& world, const std::vector<std::string>& all) {
  for (const std::string& what : all) EXPECT_TRUE(world.counts().contains(what)) << what;
}

TEST(Simulation, NoAddressAtTwoNodes) {
  World world({.nodes = 5, .seed = Seed()});
  world.Run(Hours(12));
  PrintCounts(world);
  ExpectSound(world);
  ExpectHappened(
      world, {"address given", "block allocated", "block usable", "block returned", "reboot", "cut off",
              "daemon killed", "killed within a step", "request or answer lost", "cluster store put back"});
}

// Longer than reclaimSeconds: others may get what the silent node's pods have, but nothing else.
TEST(Simulation, NodesThatAreAwayForLong) {
  World world({.nodes = 4, .seed = Seed(), .longest_cut_ms = 5 * kHour, .restores = false, .kills = 0.1});
  world.Run(Hours(36));
  PrintCounts(world);
  ExpectSound(world);
  ExpectHappened(world, {"dead node reclaimed", "silent for reclaimSeconds"});
}

// Virtual machines that are paused, some for longer than reclaimSeconds. They do not notice the pause, and
// pods request addresses as soon as it ends.
TEST(Simulation, MachinesThatArePaused) {
  // So many nodes that the blocks of one that stands still are wanted.
  World world({.nodes = 9, .seed = Seed(), .restores = false, .kills = 0.1, .longest_pause_ms = 4 * kHour});
  world.Run(Hours(5));
  PrintCounts(world);
  ExpectSound(world);
  ExpectHappened(world, {"paused", "machine was paused", "dead node reclaimed", "silent for reclaimSeconds"});
}

TEST(Simulation, TheSameSeedGivesTheSameHistory) {
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 2; ++i) {
    World world({.nodes = 3, .seed = 42});
    world.Run(kHour);
    sizes.push_back(world.history().size());
  }
  EXPECT_GT(sizes.front(), 0U);
  EXPECT_EQ(sizes.front(), sizes.back());
}

// A cluster store that lets two nodes allocate one block.
TEST(Simulation, TheCheckerFindsWhatABrokenClusterStoreDoes) {
  World world({.nodes = 4, .seed = 7, .two_creators = true});
  world.Run(3 * kHour);
  EXPECT_FALSE(CheckHistory(world.history(), world.reuse_delay_ms()).empty());
}

TEST(Checker, FindsAPlantedDouble) {
  std::vector<HistoryEvent> history = {{1000, Kind::kHold, "a", "10.0.0.1"},
                                       {2000, Kind::kHold, "b", "10.0.0.2"},
                                       {3000, Kind::kRelease, "a", "10.0.0.1"}};
  EXPECT_TRUE(CheckHistory(history, 100).empty());
  history.push_back({4000, Kind::kHold, "a", "10.0.0.2"});
  EXPECT_EQ(CheckHistory(history, 100).size(), 1U);
}

TEST(Checker, FindsAnAddressThatComesTooEarly) {
  std::vector<HistoryEvent> history = {{1000, Kind::kHold, "a", "10.0.0.1"},
                                       {2000, Kind::kRelease, "a", "10.0.0.1"},
                                       {90'000, Kind::kHold, "b", "10.0.0.1"}};
  EXPECT_EQ(CheckHistory(history, 100'000).size(), 1U);
  EXPECT_TRUE(CheckHistory(history, 80'000).empty());
}

TEST(Checker, ExcusesOnlyWhatTheSilentNodeHeld) {
  const std::vector<HistoryEvent> history = {{1000, Kind::kHold, "a", "10.0.0.1"},
                                             {2000, Kind::kExcuse, "a", ""},
                                             {3000, Kind::kHold, "a", "10.0.0.2"},
                                             {4000, Kind::kHold, "b", "10.0.0.1"},
                                             {5000, Kind::kHold, "b", "10.0.0.2"}};
  const auto findings = CheckHistory(history, 100);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings.front().find("10.0.0.2"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
