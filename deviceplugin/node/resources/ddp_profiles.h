// DDP profiles: the packages that Intel's NICs run (dynamic device personalization).
//
// The driver reports the name by devlink (ice: "fw.app.name"). The driver i40e does not report it, and its
// tool is not part of a node. A VF runs what its PF runs. A resource must not become empty because a driver
// does not answer at the moment. So DdpMemory keeps the last answer, and asks again after growing pauses.
//
// Threads: lookups as their makers say; DdpOfKernel's lookup and the functions are thread-safe; a DdpMemory
// is for one thread at a time. Errors: only beside an answer; a NIC that never answered has no profile.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/root.h"

namespace railhead::resources {

struct DdpAnswer {
  std::string profile;           // "" when it has none
  std::optional<Error> problem;  // why `profile` is not what the driver says now
};

// The profile of a PF by its address.
using DdpLookup = std::function<DdpAnswer(const std::string& pf)>;

// Asks the kernel; below another root it finds nothing.
DdpLookup DdpOfKernel(const Root& root);
// The same with a deadline. `workers` is borrowed.
DdpLookup DdpOfKernel(const Root& root, ProbeWorkers& workers);

class DdpMemory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kFirstPause{5};
  static constexpr std::chrono::seconds kLongestPause{600};

  explicit DdpMemory(DdpLookup lookup, std::function<Clock::time_point()> now = Clock::now)
      : lookup_(std::move(lookup)), now_(std::move(now)) {}

  DdpAnswer Query(const std::string& pf);
  // Forgets other PFs.
  void KeepOnly(const inventory::Inventory& inventory);

 private:
  struct Known {
    DdpAnswer answer;
    std::chrono::seconds pause{0};
    Clock::time_point ask_again;  // while there is a problem
  };

  const DdpLookup lookup_;
  const std::function<Clock::time_point()> now_;
  std::map<std::string, Known> known_;
};

// `inventory` with the profiles of its network functions, if any of `specs` selects by them: asking drivers
// takes long. Adds problems to `problems`.
std::shared_ptr<const inventory::Inventory> WithDdpProfiles(
    std::shared_ptr<const inventory::Inventory> inventory, const std::vector<ResourceSpec>& specs,
    const DdpLookup& lookup, std::vector<Error>* problems);

}  // namespace railhead::resources
