#include "tests/unit/ipam/lease/simulation/world.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kRenewMs = 60'000;
constexpr std::uint64_t kReclaimMs = 3'600'000;
constexpr std::uint64_t kTickMs = 10'000;
constexpr std::size_t kMostPods = 20;
constexpr double kFlaky = 0.03;
constexpr double kKilledWithin = 0.002;

const std::string kSubnet = "10.7.0.0/24";

}  // namespace

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
    machine.node->PassStandingStill(ms);
    return Listen(machine);
  }
  // Pods have waited for the machine, and railheadd does not know yet.
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
  // Bursts, then quiet: blocks are claimed and returned.
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
  // What pods of the boot before held rests from now on.
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

}  // namespace railhead::testing
