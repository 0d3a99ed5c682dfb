#include "cni/state/cdi_spec.h"

#include <nlohmann/json.hpp>

#include "cni/state/paths.h"
#include "netns/base/files.h"

namespace railhead {

namespace {

std::string SpecText(const std::string& kind, const CdiDevice& device) {
  using Json = nlohmann::ordered_json;
  Json edits = Json::object();
  for (const auto& path : device.device_nodes)
    edits["deviceNodes"].push_back({{"path", path}, {"permissions", "rw"}});
  for (const auto& node : device.renamed_nodes) {
    edits["deviceNodes"].push_back(
        {{"path", node.container_path}, {"hostPath", node.host_path}, {"permissions", "rw"}});
  }
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
  json["kind"] = kind;
  json["devices"] = {{{"name", device.name}, {"containerEdits", edits}}};
  return json.dump(2) + "\n";
}

}  // namespace

Result<void> WriteCdiSpec(const Root& root, const CdiDevice& device) {
  RH_TRY(MakeDirectories(paths::CdiDirectory(root)));
  return WriteAtomic(paths::CdiSpec(root, device.name), SpecText(kCdiKind, device), Sync::kVolatile, 0644);
}

Result<void> WriteCdiSpec(const std::string& path, const std::string& kind, const CdiDevice& device) {
  const std::string text = SpecText(kind, device);
  const auto before = ReadFile(path);
  if (before && *before == text) return {};
  RH_TRY(MakeDirectories(path.substr(0, path.rfind('/'))));
  return WriteAtomic(path, text, Sync::kVolatile, 0644);
}

Result<bool> RemoveCdiSpec(const Root& root, const std::string& name) {
  return RemoveWritten(paths::CdiSpec(root, name));
}

}  // namespace railhead
