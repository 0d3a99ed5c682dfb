#include "tests/support/kubelet/checkpoint_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/fnv.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

Json AsJson(const PodDevicesEntry& entry) {
  Json ids = Json::object();
  for (const auto& [node, of_node] : entry.ids) ids[std::to_string(node)] = of_node;
  return {{"PodUID", entry.pod_uid},
          {"ContainerName", entry.container},
          {"ResourceName", entry.resource},
          {"DeviceIDs", std::move(ids)},
          {"AllocResp", entry.response}};
}

PodDevicesEntry EntryOf(const Json& json) {
  PodDevicesEntry entry{json.value("PodUID", ""),
                        json.value("ContainerName", ""),
                        json.value("ResourceName", ""),
                        {},
                        json.value("AllocResp", "")};
  const Json by_node = json.value("DeviceIDs", Json::object());
  for (const auto& [node, ids] : by_node.items())
    entry.ids[std::stoi(node)] = ids.get<std::vector<std::string>>();
  return entry;
}

}  // namespace

std::vector<std::string> PodDevicesEntry::Ids() const {
  std::vector<std::string> all;
  for (const auto& [node, of_node] : ids) all.insert(all.end(), of_node.begin(), of_node.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::string Base64(const std::string& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text.push_back(i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 0x3fU]);
  }
  return text;
}

std::string CheckpointPath(const std::string& directory) {
  return directory + "/kubelet_internal_checkpoint";
}

Result<void> WriteCheckpoint(const std::string& directory, const CheckpointData& data) {
  Json entries = Json::array();
  for (const PodDevicesEntry& entry : data.pods) entries.push_back(AsJson(entry));
  const Json content{{"PodDeviceEntries", std::move(entries)}, {"RegisteredDevices", data.registered}};
  const Json file{{"Data", content}, {"Checksum", Fnv1a32(content.dump())}};
  return WriteAtomic(CheckpointPath(directory), file.dump(), Sync::kVolatile);
}

Result<std::optional<CheckpointData>> ReadCheckpointFile(const std::string& directory) {
  const auto text = RH_TRY(ReadFile(CheckpointPath(directory)));
  if (!text) return std::optional<CheckpointData>();
  const Json file = Json::parse(*text, nullptr, false);
  if (!file.is_object() || !file.contains("Data") ||
      file.value("Checksum", 0U) != Fnv1a32(file["Data"].dump()))
    return Fail(ErrorCode::kMalformed, CheckpointPath(directory) + " is corrupted");
  CheckpointData data;
  for (const Json& entry : file["Data"]["PodDeviceEntries"]) data.pods.push_back(EntryOf(entry));
  data.registered = file["Data"]["RegisteredDevices"].get<std::map<std::string, std::vector<std::string>>>();
  return std::optional(std::move(data));
}

}  // namespace railhead::testing
