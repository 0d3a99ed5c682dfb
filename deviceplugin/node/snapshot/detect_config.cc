#include "deviceplugin/node/snapshot/detect_config.h"

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

std::string DescribeMember(const resources::PoolMember& member) {
  const inventory::NicFunction& function = member.function;
  std::string text = "  " + function.id;
  if (function.kind == inventory::FunctionKind::kAccelerator) return text;
  const std::string& pf = function.pf_name.empty() ? function.pf.ToString() : function.pf_name;
  if (function.vf_index >= 0) {
    text += (function.is_vf ? "  VF " : "  subfunction ") + std::to_string(function.vf_index) + " of " + pf;
  } else {
    text += "  " + pf;
  }
  if (!function.rdma_device.empty()) text += ", " + function.rdma_device;
  return text;
}

}  // namespace

Result<ConfigSource> DetectConfig(const Root& root, const std::string& path,
                                  const std::string& resource_prefix) {
  const auto text = RH_TRY(ReadFile(root.Path(path)));
  if (!text) {
    return Fail(ErrorCode::kNotFound, "reading the configuration " + path + ": no such file",
                "name a fabric.json, or a config.json of sriov-network-device-plugin");
  }
  const auto document = RH_TRY(JsonDocument::Parse(*text, path));
  const JsonReader reader = document.Root();
  RH_TRY(reader.status());
  ConfigSource source;
  source.resource_prefix = resource_prefix;
  source.is_proposal = path != kFabricPath && path != kSriovdpConfigPath;
  for (const std::string& key : reader.Keys()) {
    if (ToLower(key) == "resourcelist") {
      source.sriovdp = path;
      return source;
    }
  }
  if (reader.Has("rails") || reader.Has("version") || reader.Has("pools")) {
    source.fabric = path;
    return source;
  }
  return Fail(ErrorCode::kInvalid,
              path +
                  ": has neither \"rails\", as fabric.json, nor \"resourceList\", as "
                  "sriov-network-device-plugin's config.json",
              "see docs/reference/fabric.md and docs/operate/migration.md");
}

std::string SnapshotAsText(const NodeSnapshot& node) {
  std::string text;
  for (const auto& pool : node.pools) {
    const std::size_t count = pool->members.size();
    text += pool->spec.resource + ": " + std::to_string(count) + (count == 1 ? " device\n" : " devices\n");
    for (const resources::PoolMember& member : pool->members) text += DescribeMember(member) + "\n";
  }
  for (const std::string& rail : node.absent_rails) {
    text += "rail " + rail + ": this node has no PF for it\n";
  }
  std::string left_out;
  for (const ExcludedDevice& one : NotAdvertised(node))
    left_out += "  " + one.function->id + "  " + one.because + "\n";
  if (!left_out.empty()) text += "not given out:\n" + left_out;
  return text;
}

}  // namespace railhead
