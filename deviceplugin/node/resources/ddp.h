// DDP profiles: the packages that Intel's NICs run (dynamic device personalization).
//
// The driver tells the name by devlink (ice: "fw.app.name"; i40e tells none, and its tool is no
// part of a node). A VF runs what its PF runs.
// A driver that does not answer for the moment must not empty a resource: DdpMemory goes on with
// what it said last, and asks again after pauses that grow.
// Threads: lookups as their makers say, DdpOfKernel's and the functions are thread-safe; a
// DdpMemory is for one thread at a time. Errors: only beside an answer; a NIC that never said has
// no profile.
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
#include "netns/base/error.h"
#include "netns/base/files.h"

namespace railhead {

struct DdpAnswer {
  std::string profile;           // "" when it has none
  std::optional<Error> problem;  // why `profile` is not what the driver says now
};

// The profile of a PF by its address.
using DdpLookup = std::function<DdpAnswer(const std::string& pf)>;

// Of the kernel; of nothing below another root.
DdpLookup DdpOfKernel(const Root& root);

class DdpMemory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kFirstPause{5};
  static constexpr std::chrono::seconds kLongestPause{600};

  explicit DdpMemory(DdpLookup lookup, std::function<Clock::time_point()> now = Clock::now)
      : lookup_(std::move(lookup)), now_(std::move(now)) {}

  DdpAnswer Ask(const std::string& pf);
  // Other PFs are forgotten.
  void KeepOnly(const Inventory& inventory);

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

// `inventory` with the profiles of its network functions, if any of `specs` selects by them:
// asking drivers takes long. What goes wrong joins `problems`.
std::shared_ptr<const Inventory> WithDdpProfiles(std::shared_ptr<const Inventory> inventory,
                                                 const std::vector<ResourceSpec>& specs,
                                                 const DdpLookup& lookup, std::vector<Error>* problems);

}  // namespace railhead
