#include "deviceplugin/services/health/state_file.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/health_json.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

using Json = nlohmann::json;

constexpr const char* kDirectory = "/run/railhead";
constexpr std::int64_t kVersion = 1;

// What goes into the file is read again as it was.
std::chrono::system_clock::time_point WholeSeconds(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

// Trouble that came from, or went with, the PF and nothing else.
bool IsOfPf(const HealthChange& change) {
  if (!change.is_vf) return false;
  const auto of_pf = [&](const HealthReason& reason) { return reason.device == change.pf; };
  return std::all_of(change.started.begin(), change.started.end(), of_pf) &&
         std::all_of(change.ended.begin(), change.ended.end(), of_pf);
}

bool IsSame(const HealthRecord& record, const HealthChange& change) {
  return record.device == (change.is_vf ? change.pf : change.device) && record.healthy == change.healthy &&
         record.time == WholeSeconds(change.time) && record.started == change.started &&
         record.ended == change.ended;
}

}  // namespace

std::string HealthStatePath(const Root& root) {
  return root.Path(kDirectory) + "/health.json";
}

Result<std::optional<HealthState>> ReadHealthState(const Root& root) {
  const std::string path = HealthStatePath(root);
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return std::nullopt;
  const auto document = RH_TRY(JsonDocument::Parse(*text, path, kMaxFileSize));
  JsonReader reader = document.Root();
  (void)reader.Int("version", kVersion, kVersion);
  if (!reader.Has("version")) reader.Fail("version", "is required");
  HealthState state;
  auto devices = reader.Objects("devices");
  state.devices.reserve(devices.size());
  for (JsonReader& device : devices) state.devices.push_back(ReadDeviceHealth(&device));
  auto changes = reader.Objects("changes");
  state.history.reserve(changes.size());
  for (JsonReader& change : changes) state.history.push_back(ReadHealthRecord(&change));
  RH_TRY(reader.status());
  return state;
}

Result<void> WriteHealthState(const Root& root, const HealthState& state) {
  Json json = {{"version", kVersion}, {"devices", Json::array()}, {"changes", Json::array()}};
  for (const DeviceHealth& device : state.devices) json["devices"].push_back(DeviceAsJson(device));
  for (const HealthRecord& record : state.history) json["changes"].push_back(RecordAsJson(record));
  // Names of interfaces are any bytes.
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  RH_TRY_WRAP(MakeStateFolder(root, root.Path(kDirectory)), "saving health");
  RH_TRY_WRAP(WriteAtomic(HealthStatePath(root), text, Sync::kVolatile, 0644), "saving health");
  return {};
}

std::vector<HealthRecord> RecordsOf(const std::vector<HealthChange>& changes) {
  std::vector<HealthRecord> records;
  for (const HealthChange& change : changes) {
    const bool of_pf = IsOfPf(change);
    if (of_pf) {
      const auto same = std::find_if(records.begin(), records.end(),
                                     [&](const HealthRecord& record) { return IsSame(record, change); });
      if (same != records.end()) {
        ++same->vfs;
        continue;
      }
    }
    records.push_back({WholeSeconds(change.time), of_pf ? change.pf : change.device, !of_pf,
                       of_pf ? std::size_t{1} : std::size_t{0}, change.healthy, change.started,
                       change.ended});
  }
  return records;
}

void AppendHistory(const std::vector<HealthChange>& changes, std::vector<HealthRecord>* history) {
  auto records = RecordsOf(changes);
  std::move(records.begin(), records.end(), std::back_inserter(*history));
  if (history->size() > kHealthHistory) {
    history->erase(history->begin(), history->end() - static_cast<std::ptrdiff_t>(kHealthHistory));
  }
}

}  // namespace railhead
