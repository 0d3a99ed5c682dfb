// A cluster of nodes on one cluster store, and everything that can go wrong, by chance but
// repeatable: requests lost, answers lost, requests that arrive late, nodes cut off, daemons
// killed within a step, reboots, disks wiped or put back while a machine is off, the cluster store
// restored from a backup, clocks that run faster or slower than others.
// Ownership: a World owns its nodes. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/lease/memory_store.h"
#include "tests/support/lease/node.h"
#include "tests/unit/ipam/lease/simulation/checker.h"

namespace railhead::testing {

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
  [[nodiscard]] std::uint64_t rest_ms() const { return 100'000; }
  // How often each thing happened: so that tests see that it did.
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

}  // namespace railhead::testing
