#include "deviceplugin/daemon/node_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/address_leasing/lease_check.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/provision/provisioner.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

Result<HostNetwork> AskHostNetwork(Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  return ReadHostNetwork(*route);
}

Result<bool> IsExclusive(Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto rdma = kernel.OpenRdma(host);
  if (!rdma) return false;  // no RDMA, no mode
  return RH_TRY((*rdma)->NetnsMode()) == RdmaNetnsMode::kExclusive;
}

// Device nodes are named in Allocate, before the move that can change their numbers. That is how
// the users of config.json run it, with rdma-cni, and in a namespace of its own the kernel opens
// no other pod's nodes; a fabric says what it wants, and has a way that works.
Result<void> JudgeNodesInExclusiveMode(Kernel& kernel, Plan* plan) {
  std::vector<std::string> resources;
  for (const auto& pool : plan->pools) {
    if (pool->spec.rdma_nodes != RdmaNodes::kNone) resources.push_back(pool->spec.resource);
  }
  if (resources.empty() || !RH_TRY(IsExclusive(kernel))) return {};
  const std::string gives = plan->config_path + ": " + Join(resources, ", ") +
                            " gives out plain RDMA device nodes, but the node's RDMA mode is exclusive";
  if (plan->of_fabric) {
    return Fail(ErrorCode::kInvalid, gives, R"(use "delivery": "cdi", or: rdma system set netns shared)");
  }
  plan->warnings.push_back({ErrorCode::kInvalid, gives + ": the nodes may have other numbers after the move",
                            "a pool of fabric.json with \"delivery\": \"cdi\" names them after it", 0});
  return {};
}

Result<void> CheckIsolation(const Root& root, const std::string& path) {
  const auto fabric = RH_TRY(ReadFabric(root, path));
  if (fabric) RH_TRY(ParseIsolation(fabric->isolation, path, fabric->rails.size()));
  return {};
}

}  // namespace

Result<NodePlan> PlanNode(const Root& root, Kernel& kernel, const ConfigSource& source,
                          const DdpLookup& ddp) {
  const HostNetwork host = RH_TRY_WRAP(AskHostNetwork(kernel), "asking which NICs the host itself needs");
  Plan plan = RH_TRY(MakePlan(root, source, host, ddp));
  RH_TRY(JudgeNodesInExclusiveMode(kernel, &plan));
  HealthRules health = RH_TRY(ParseHealthRules(plan.health, plan.config_path));
  // Others carry these out, some at start only; but a mistake is to be told now.
  if (plan.of_fabric) {
    RH_TRY(ReadProvision(root, plan.config_path));
    RH_TRY(CheckLeasing(root, plan.config_path));
    RH_TRY(ReadConnectivity(root, plan.config_path));
    RH_TRY(CheckIsolation(root, plan.config_path));
  }
  return NodePlan{std::move(plan), std::move(health)};
}

}  // namespace railhead
