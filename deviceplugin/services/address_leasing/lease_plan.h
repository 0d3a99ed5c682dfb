// What this node is to lease, and from which kind of store: fabric.json's part of it.
//
// Every rail that the fabric leases (Fabric::Leases) is a pool: its subnet without gateway and
// exclusions. Rails that give nodes ranges of their own are left alone.
// Threads: pure functions over files. Errors: kInvalid, with the JSON pointer or the rail.
#pragma once

#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "ipam/lease/settings.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

struct LeasePlan {
  LeaseSettings settings;
  LeaseStoreConfig store;
  std::string where;  // "FILE: /addresses/store", for messages
};

// nullopt: the fabric leases nothing, or there is none.
Result<std::optional<LeasePlan>> PlanLeases(const Root& root, const std::string& fabric_path);
// The same for a fabric that was read, without asking the node who it is.
Result<std::optional<LeasePlan>> CheckLeases(const Fabric& fabric, const std::string& fabric_path);

}  // namespace railhead
