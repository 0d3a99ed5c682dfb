// /run/railhead/health.json: every device's state, and the newest changes with reason and time.
//
// Written by railheadd after every change, read by it when it starts and by `railctl
// health`. The file goes with the boot, as
// counters and links do.
// Trouble of a PF is one entry of the history, however many VFs it reaches: else one cut
// cable would push all else out.
// Threads: thread-safe functions, one writer.
#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/health/observation.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead::health {

inline constexpr std::size_t kHealthHistory = 256;

struct HealthRecord {
  std::chrono::system_clock::time_point time;
  std::string device;
  bool itself = true;   // false: only VFs of `device` changed
  std::size_t vfs = 0;  // how many of its VFs changed with it
  bool healthy = true;
  std::vector<HealthReason> started;
  std::vector<HealthReason> ended;

  bool operator==(const HealthRecord&) const = default;
};

struct HealthState {
  std::vector<DeviceHealth> devices;
  std::vector<HealthRecord> history;  // oldest first

  bool operator==(const HealthState&) const = default;
};

std::string HealthStatePath(const Root& root);

// nullopt: there is no file. kMalformed, kInvalid: it is none of ours.
Result<std::optional<HealthState>> ReadHealthState(const Root& root);
Result<void> WriteHealthState(const Root& root, const HealthState& state);

// One observation round's changes as entries.
std::vector<HealthRecord> RecordsOf(const std::vector<HealthChange>& changes);
// The same, appended; the oldest beyond kHealthHistory go.
void AppendHistory(const std::vector<HealthChange>& changes, std::vector<HealthRecord>* history);

// Health as JSON: in the state file, and in what railctl prints.
//
// Times are RFC 3339 in UTC, to the second. Reading passes over fields it does not know,
// and over reasons of rules that a later version has: this one cannot tell when they end.
// Threads: pure functions. Errors stick in the JsonReader.

nlohmann::json DeviceAsJson(const DeviceHealth& device);
nlohmann::json RecordAsJson(const HealthRecord& record);
DeviceHealth ReadDeviceHealth(JsonReader* reader);
HealthRecord ReadHealthRecord(JsonReader* reader);

// "Healthy", "Unhealthy": kubelet's words.
const char* HealthWord(bool healthy);

// "2026-03-01T12:00:00Z"
std::string FormatTime(std::chrono::system_clock::time_point time);
std::optional<std::chrono::system_clock::time_point> ParseTime(std::string_view text);

}  // namespace railhead::health
