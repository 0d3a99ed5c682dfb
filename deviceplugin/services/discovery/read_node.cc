#include "deviceplugin/services/discovery/read_node.h"

#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "netns/base/text.h"

namespace railhead::discovery {
namespace {

Result<inventory::HostNetwork> AskHostNetwork(const Root& root, Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  return inventory::ReadHostNetwork(root, *route);
}

Result<bool> IsExclusive(Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto rdma = kernel.OpenRdma(host);
  if (!rdma) return false;  // no RDMA, no mode
  return RH_TRY((*rdma)->NetnsMode()) == RdmaNetnsMode::kExclusive;
}

// Allocate names device nodes before the move, which can change their numbers. Users of config.json run it
// that way, with rdma-cni. In an RDMA namespace of its own a pod cannot open another pod's nodes: the kernel
// refuses. A fabric states what it wants, and has a way that works.
Result<void> JudgeNodesInExclusiveMode(Kernel& kernel, NodeSnapshot* node) {
  std::vector<std::string> resources;
  for (const auto& pool : node->pools) {
    if (pool->spec.rdma_nodes != resources::RdmaNodes::kNone) resources.push_back(pool->spec.resource);
  }
  if (resources.empty() || !RH_TRY(IsExclusive(kernel))) return {};
  const std::string gives = node->config_path + ": " + Join(resources, ", ") +
                            " delivers plain RDMA device nodes, but the node's RDMA mode is exclusive";
  if (node->of_fabric) {
    return Fail(ErrorCode::kInvalid, gives, R"(use "deviceNodes": "cdi", or: rdma system set netns shared)");
  }
  node->warnings.push_back({ErrorCode::kInvalid, gives + ": the nodes may have other numbers after the move",
                            "a pool of fabric.json with \"deviceNodes\": \"cdi\" names them after it", 0});
  return {};
}

}  // namespace

Result<NodeReading> ReadNode(const Root& root, Kernel& kernel, const ConfigSource& source,
                             const resources::DdpLookup& ddp, const inventory::PfReads& reads) {
  const inventory::HostNetwork host =
      RH_TRY_WRAP(AskHostNetwork(root, kernel), "reading which NICs the host itself needs");
  NodeSnapshot node = RH_TRY(TakeSnapshot(root, source, host, ddp, reads));
  RH_TRY(JudgeNodesInExclusiveMode(kernel, &node));
  const std::string rules = node.rails() != nullptr ? node.rails()->health : std::string();
  health::HealthRules health = RH_TRY(health::ParseHealthRules(rules, node.config_path));
  // Services apply these; but report a mistake now.
  if (node.rails() != nullptr) RH_TRY(fabric_follow::CheckSections(*node.rails(), node.config_path));
  return NodeReading{std::move(node), std::move(health)};
}

}  // namespace railhead::discovery
