#include "cni/state/cdi_spec.h"

#include <nlohmann/json.hpp>

#include "cni/state/paths.h"
#include "netns/base/files.h"

namespace railhead {

Result<void> WriteCdiSpec(const Root& root, const CdiDevice& device) {
  using Json = nlohmann::ordered_json;
  Json edits = Json::object();
  for (const auto& path : device.device_nodes)
    edits["deviceNodes"].push_back({{"path", path}, {"permissions", "rw"}});
  for (const auto& mount : device.mounts) {
    edits["mounts"].push_back({{"hostPath", mount.host_path},
                               {"containerPath", mount.container_path},
                               {"options", {"ro", "nosuid", "nodev", "noexec", "bind"}}});
  }
  // A device without edits is refused by the runtimes' CDI library.
  if (edits.empty()) edits["env"] = {"RAILHEAD_NIC=" + device.bdf};
  Json json;
  json["cdiVersion"] = "0.5.0";
  json["kind"] = kCdiKind;
  json["devices"] = {{{"name", device.bdf}, {"containerEdits", edits}}};
  RH_TRY(MakeDirectories(paths::CdiDirectory(root)));
  return WriteAtomic(paths::CdiSpec(root, device.bdf), json.dump(2) + "\n", Sync::kVolatile, 0644);
}

Result<bool> RemoveCdiSpec(const Root& root, const std::string& bdf) {
  return RemoveWritten(paths::CdiSpec(root, bdf));
}

}  // namespace railhead
