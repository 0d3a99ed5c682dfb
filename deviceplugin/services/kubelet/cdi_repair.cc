#include "deviceplugin/services/kubelet/cdi_repair.h"

#include <chrono>

#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/state_folder.h"

namespace railhead::kubelet {

Result<std::vector<std::string>> RepairCdiSpecs(const Root& root, const std::vector<std::string>& ids) {
  std::vector<std::string> repaired;
  for (const std::string& id : ids) {
    const std::string path = paths::CdiSpec(root, id);
    const std::string name = path.substr(path.rfind('/') + 1);
    if (DeviceOfCdiSpec(name) != id || RH_TRY(IsCdiSpecIntact(root, name))) continue;
    const auto lock = FileLock::Acquire(paths::Lock(root, id), std::chrono::milliseconds(0));
    if (!lock && lock.error().code == ErrorCode::kTimeout) continue;
    if (!lock) return Fail(lock.error());
    if (RH_TRY_WRAP(RepairCdiSpec(root, name), "writing " + path + " again")) repaired.push_back(id);
  }
  return repaired;
}

}  // namespace railhead::kubelet
