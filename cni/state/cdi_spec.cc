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
  if (!device.env.empty()) edits["env"] = device.env;
  // A device without edits is refused by the runtimes' CDI library.
  if (edits.empty()) edits["env"] = {"RAILHEAD_NIC=" + device.name};
  Json json;
  json["cdiVersion"] = "0.5.0";
  json["kind"] = kCdiKind;
  json["devices"] = {{{"name", device.name}, {"containerEdits", edits}}};
  RH_TRY(MakeDirectories(paths::CdiDirectory(root)));
  return WriteAtomic(paths::CdiSpec(root, device.name), json.dump(2) + "\n", Sync::kVolatile, 0644);
}

Result<bool> RemoveCdiSpec(const Root& root, const std::string& name) {
  return RemoveWritten(paths::CdiSpec(root, name));
}

}  // namespace railhead
