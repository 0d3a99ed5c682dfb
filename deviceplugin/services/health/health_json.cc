#include "deviceplugin/services/health/health_json.h"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

namespace railhead {
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

}  // namespace railhead
