#include "deviceplugin/pools/given_out.h"

#include "cni/state/checkpoint.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"

namespace railhead {

std::set<std::string> GivenUnderOtherNames(const Root& root,
                                           const std::vector<std::shared_ptr<const ResourcePool>>& pools) {
  std::set<std::string> given;
  const auto checkpoint = ReadCheckpoint(root);
  if (!checkpoint) return given;
  for (const ContainerDevices& container : *checkpoint) {
    if (!PodIsThere(root, container.pod_uid)) continue;
    for (const std::string& id : container.ids) {
      for (const auto& pool : pools) {
        if (pool->spec.resource != container.resource && pool->Find(id) != nullptr) given.insert(id);
      }
    }
  }
  return given;
}

bool PodIsThere(const Root& root, const std::string& pod_uid) {
  const std::string pods = paths::KubeletPods(root);
  return !Exists(pods) || Exists(std::string(pods).append("/").append(pod_uid));
}

}  // namespace railhead
