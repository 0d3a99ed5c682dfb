// What this node shall advertise now: its configuration applied to its hardware and to what
// the host itself needs. At start, and whenever one of these may have changed.
// Threads: thread-safe.
#pragma once

#include "deviceplugin/health/rules.h"
#include "deviceplugin/pools/plan.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

struct NodePlan {
  Plan plan;
  HealthRules health;
};

// Errors: those of MakePlan for the configuration; kInvalid also for pools that give out
// plain RDMA device nodes while the node is in exclusive mode. Others say that the host
// could not be asked: without that a NIC that the node lives on could be given to a pod.
Result<NodePlan> PlanNode(const Root& root, Kernel& kernel, const ConfigSource& source);

}  // namespace railhead
