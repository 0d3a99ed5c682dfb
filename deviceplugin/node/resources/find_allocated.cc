#include "deviceplugin/node/resources/find_allocated.h"

#include "cni/state/kubelet_checkpoint.h"

namespace railhead::resources {

std::set<std::string> FindAllocatedUnderOtherNames(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools) {
  std::set<std::string> given;
  const auto checkpoint = ReadCheckpoint(root);
  if (!checkpoint) return given;
  for (const ContainerDevices& container : *checkpoint) {
    if (KubeletForgot(root, container.pod_uid)) continue;
    for (const std::string& id : container.ids) {
      for (const auto& pool : pools) {
        if (pool->spec.resource != container.resource && pool->Find(id) != nullptr) given.insert(id);
      }
    }
  }
  return given;
}

}  // namespace railhead::resources
