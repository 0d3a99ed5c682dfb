// What this node shall advertise now: its configuration applied to its hardware and to what
// the host itself needs. At start, and whenever one of these may have changed.
// Threads: thread-safe.
#pragma once

#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/health/rules.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

struct NodePlan {
  Plan plan;
  HealthRules health;
};

// Errors: those of MakePlan for the configuration; kInvalid also for pools of fabric.json that
// deliver RDMA device nodes by "mount" while the node is in exclusive mode. Resources of a
// config.json do so there as well, as their users know it: that is a warning. Others say that the host
// could not be asked: without that a NIC that the node lives on could be given to a pod.
Result<NodePlan> PlanNode(const Root& root, Kernel& kernel, const ConfigSource& source, const DdpLookup& ddp);
// With drivers as they answer now.
inline Result<NodePlan> PlanNode(const Root& root, Kernel& kernel, const ConfigSource& source) {
  return PlanNode(root, kernel, source, DdpOfKernel(root));
}

}  // namespace railhead
