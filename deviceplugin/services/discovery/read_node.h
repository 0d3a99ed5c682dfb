// ReadNode: applies the node's configuration to its hardware, without the NICs that the host itself needs.
// At start, and whenever one of these may have changed. Threads: thread-safe.
#pragma once

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/health/rules.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::discovery {

struct NodeReading {
  NodeSnapshot snapshot;
  health::HealthRules health;
};

// Errors: those of TakeSnapshot for the configuration. Pools of fabric.json that deliver RDMA device nodes by
// "mount" give kInvalid while the node is in exclusive mode. Resources of a config.json do so there as well,
// as their users know it: that is a warning. Other errors mean that the host's network could not be read:
// otherwise a NIC that the host needs could be allocated to a pod.
Result<NodeReading> ReadNode(const Root& root, Kernel& kernel, const ConfigSource& source,
                             const resources::DdpLookup& ddp, const inventory::PfReads& reads = {});
// With drivers as they answer now.
inline Result<NodeReading> ReadNode(const Root& root, Kernel& kernel, const ConfigSource& source) {
  return ReadNode(root, kernel, source, resources::DdpOfKernel(root));
}

}  // namespace railhead::discovery
