#include "deviceplugin/services/health/state_file.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/json/json_reader.h"

namespace railhead::health {
namespace {

using Json = nlohmann::json;

constexpr const char* kDirectory = "/run/railhead";
constexpr std::int64_t kStateVersion = 1;

// What goes into the file is read again as it was.
std::chrono::system_clock::time_point WholeSeconds(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

// Trouble that came from, or went with, the PF and nothing else.
bool IsOfPf(const HealthChange& change) {
  if (!change.is_vf) return false;
  const auto of_pf = [&](const HealthReason& reason) { return reason.device == change.pf; };
  return std::ranges::all_of(change.started, of_pf) && std::ranges::all_of(change.ended, of_pf);
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
  (void)reader.Int("version", kStateVersion, kStateVersion);
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
  Json json = {{"version", kStateVersion}, {"devices", Json::array()}, {"changes", Json::array()}};
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
      const auto same =
          std::ranges::find_if(records, [&](const HealthRecord& record) { return IsSame(record, change); });
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

namespace {

using Json = nlohmann::json;

constexpr const char* kHealthy = "Healthy";
constexpr const char* kUnhealthy = "Unhealthy";
constexpr const char* kTimeFormat = "%Y-%m-%dT%H:%M:%SZ";
constexpr std::int64_t kManyVfs = 65536;

Json ReasonsJson(const std::vector<HealthReason>& reasons) {
  Json list = Json::array();
  for (const HealthReason& reason : reasons) {
    Json json = {{"rule", NameOf(reason.rule)},
                 {"device", reason.device},
                 {"text", reason.text},
                 {"since", FormatTime(reason.since)}};
    if (!reason.counter.empty()) json["counter"] = reason.counter;
    list.push_back(std::move(json));
  }
  return list;
}

std::chrono::system_clock::time_point RequiredTime(JsonReader* reader, const std::string& key) {
  const std::string text = reader->RequiredString(key);
  const auto time = ParseTime(text);
  if (!time) reader->Fail(key, "is no time of the form 2026-03-01T12:00:00Z");
  return time.value_or(std::chrono::system_clock::time_point{});
}

bool RequiredState(JsonReader* reader) {
  const std::string state = reader->RequiredString("state");
  if (state != kHealthy && state != kUnhealthy) reader->Fail("state", "is neither Healthy nor Unhealthy");
  return state == kHealthy;
}

std::vector<HealthReason> ReadReasons(JsonReader* reader, const std::string& key) {
  auto objects = reader->Objects(key);
  std::vector<HealthReason> reasons;
  reasons.reserve(objects.size());
  for (JsonReader& object : objects) {
    // A rule of a later version: this one cannot tell when it is over.
    const auto rule = HealthRuleNamed(object.RequiredString("rule"));
    if (!rule) continue;
    HealthReason reason;
    reason.rule = *rule;
    reason.device = object.RequiredString("device");
    reason.counter = object.String("counter").value_or("");
    reason.text = object.RequiredString("text");
    reason.since = RequiredTime(&object, "since");
    reasons.push_back(std::move(reason));
  }
  return reasons;
}

}  // namespace

const char* HealthWord(bool healthy) {
  return healthy ? kHealthy : kUnhealthy;
}

std::string FormatTime(std::chrono::system_clock::time_point time) {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  std::tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return "0000-00-00T00:00:00Z";
  std::array<char, 40> buffer{};
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), kTimeFormat, &utc)};
}

std::optional<std::chrono::system_clock::time_point> ParseTime(std::string_view text) {
  using std::chrono::system_clock;
  std::tm utc{};
  const std::string copy(text);
  const char* end = ::strptime(copy.c_str(), kTimeFormat, &utc);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const std::chrono::seconds since_epoch(::timegm(&utc));
  // The clock counts nanoseconds, which end in the year 2262.
  if (std::chrono::abs(since_epoch) > std::chrono::floor<std::chrono::seconds>(system_clock::duration::max()))
    return std::nullopt;
  return system_clock::time_point(since_epoch);
}

Json DeviceAsJson(const DeviceHealth& device) {
  return {{"device", device.id},
          {"pf", device.pf},
          {"pfName", device.pf_name},
          {"vf", device.is_vf},
          {"state", HealthWord(device.healthy)},
          {"since", FormatTime(device.since)},
          {"reasons", ReasonsJson(device.reasons)}};
}

Json RecordAsJson(const HealthRecord& record) {
  return {{"time", FormatTime(record.time)},
          {"device", record.device},
          {"itself", record.itself},
          {"vfs", record.vfs},
          {"state", HealthWord(record.healthy)},
          {"started", ReasonsJson(record.started)},
          {"ended", ReasonsJson(record.ended)}};
}

DeviceHealth ReadDeviceHealth(JsonReader* reader) {
  DeviceHealth device;
  device.id = reader->RequiredString("device");
  device.pf = reader->RequiredString("pf");
  device.pf_name = reader->String("pfName").value_or("");
  device.is_vf = reader->Bool("vf").value_or(false);
  device.healthy = RequiredState(reader);
  device.since = RequiredTime(reader, "since");
  device.reasons = ReadReasons(reader, "reasons");
  return device;
}

HealthRecord ReadHealthRecord(JsonReader* reader) {
  HealthRecord record;
  record.time = RequiredTime(reader, "time");
  record.device = reader->RequiredString("device");
  record.itself = reader->Bool("itself").value_or(true);
  record.vfs = static_cast<std::size_t>(reader->Int("vfs", 0, kManyVfs).value_or(0));
  record.healthy = RequiredState(reader);
  record.started = ReadReasons(reader, "started");
  record.ended = ReadReasons(reader, "ended");
  return record;
}

}  // namespace railhead::health
