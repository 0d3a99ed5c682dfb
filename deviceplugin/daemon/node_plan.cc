#include "deviceplugin/daemon/node_plan.h"

#include <string>
#include <utility>

#include "deviceplugin/provision/provisioner.h"

namespace railhead {
namespace {

Result<HostNetwork> AskHostNetwork(Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  return ReadHostNetwork(*route);
}

// Device nodes are named in Allocate, before the move that can change their numbers.
Result<void> RefuseNodesInExclusiveMode(Kernel& kernel, const Plan& plan) {
  for (const auto& pool : plan.pools) {
    if (pool->spec.rdma_nodes == RdmaNodes::kNone) continue;
    const NetNs host = RH_TRY(kernel.HostNetns());
    const auto rdma = kernel.OpenRdma(host);
    if (!rdma) return {};  // no RDMA, no mode
    if (RH_TRY((*rdma)->NetnsMode()) == RdmaNetnsMode::kShared) return {};
    return Fail(ErrorCode::kInvalid,
                plan.config_path + ": " + pool->spec.resource +
                    " gives out plain RDMA device nodes, but the " + "node's RDMA mode is exclusive",
                "use a pool of fabric.json with \"delivery\": \"cdi\", or: rdma system set netns shared");
  }
  return {};
}

}  // namespace

Result<NodePlan> PlanNode(const Root& root, Kernel& kernel, const ConfigSource& source) {
  const HostNetwork host = RH_TRY_WRAP(AskHostNetwork(kernel), "asking which NICs the host itself needs");
  Plan plan = RH_TRY(MakePlan(root, source, host, DdpOfKernel(root)));
  RH_TRY(RefuseNodesInExclusiveMode(kernel, plan));
  HealthRules health = RH_TRY(ParseHealthRules(plan.health, plan.config_path));
  // Carried out at start only; but a mistake is to be told now, not at the next start.
  if (plan.of_fabric) RH_TRY(ReadProvision(root, plan.config_path));
  return NodePlan{std::move(plan), std::move(health)};
}

}  // namespace railhead
