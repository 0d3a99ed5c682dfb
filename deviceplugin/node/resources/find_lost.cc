#include "deviceplugin/node/resources/find_lost.h"

#include <algorithm>

#include "cni/state/kubelet_checkpoint.h"

namespace railhead::resources {

std::map<std::string, std::set<std::string>> FindAllocatedAndLost(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools) {
  std::map<std::string, std::set<std::string>> lost;
  const auto checkpoint = ReadCheckpoint(root);
  if (!checkpoint) return lost;
  for (const ContainerDevices& container : *checkpoint) {
    const bool offered = std::ranges::any_of(
        pools, [&](const auto& pool) { return pool->spec.resource == container.resource; });
    if (!offered || KubeletForgot(root, container.pod_uid)) continue;
    for (const std::string& id : container.ids) {
      const auto has = [&](const auto& pool) { return pool->Find(id) != nullptr; };
      if (std::ranges::none_of(pools, has)) lost[container.resource].insert(id);
    }
  }
  return lost;
}

}  // namespace railhead::resources
