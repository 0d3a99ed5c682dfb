#include "deviceplugin/services/reachability/reachability_settings.h"

#include <nlohmann/json.hpp>

#include "cni/fabric/fabric.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

using std::chrono::seconds;

constexpr int kMaxInterval = 3600;
constexpr int kMaxPeers = 64;
constexpr int kMaxPaths = 64;

ConnectivitySettings ReadSettings(JsonReader& parent) {
  ConnectivitySettings settings;
  const auto* raw = parent.Raw("connectivity");
  if (raw->is_boolean()) {
    settings.enabled = raw->get<bool>();
    return settings;
  }
  auto object = parent.Object("connectivity");
  if (!object) return settings;
  settings.enabled = true;
  if (const auto value = object->Int("intervalSeconds", 1, kMaxInterval)) settings.interval = seconds(*value);
  if (const auto value = object->Int("peers", 0, kMaxPeers)) settings.peers = static_cast<int>(*value);
  if (const auto value = object->Int("paths", 1, kMaxPaths)) settings.paths = static_cast<int>(*value);
  if (const auto value = object->Int("port", 1, 65535)) settings.port = static_cast<std::uint16_t>(*value);
  if (const auto value = object->Int("podSeconds", 0, kMaxInterval)) settings.pods = seconds(*value);
  settings.rdma = object->Bool("rdma").value_or(false);
  object->Close();
  return settings;
}

}  // namespace

Result<ConnectivitySettings> ParseConnectivity(const std::string& text, const std::string& what,
                                               std::vector<Error>* all) {
  if (text.empty()) return ConnectivitySettings{};
  const JsonDocument document = RH_TRY(JsonDocument::Parse(R"({"connectivity":)" + text + "}", what));
  JsonReader reader = document.Root();
  const ConnectivitySettings settings = ReadSettings(reader);
  if (all != nullptr) *all = reader.errors();
  RH_TRY(reader.status());
  return settings;
}

Result<ConnectivitySettings> ReadConnectivity(const Root& root, const std::string& path) {
  const auto fabric = RH_TRY(ReadFabric(root, path));
  if (!fabric) return ConnectivitySettings{};
  return ParseConnectivity(fabric->connectivity, path);
}

}  // namespace railhead
