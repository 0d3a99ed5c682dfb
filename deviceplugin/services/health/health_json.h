// Health as JSON: in the state file, and in what railctl prints.
//
// Times are RFC 3339 in UTC, to the second. Reading passes over fields it does not know,
// and over reasons of rules that a later version has: this one cannot tell when they end.
// Threads: pure functions. Errors stick in the JsonReader.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "deviceplugin/services/health/state_file.h"
#include "netns/json/json_reader.h"

namespace railhead {

nlohmann::json DeviceAsJson(const DeviceHealth& device);
nlohmann::json RecordAsJson(const HealthRecord& record);
DeviceHealth ReadDeviceHealth(JsonReader* reader);
HealthRecord ReadHealthRecord(JsonReader* reader);

// "Healthy", "Unhealthy": kubelet's words.
const char* HealthWord(bool healthy);

// "2026-03-01T12:00:00Z"
std::string FormatTime(std::chrono::system_clock::time_point time);
std::optional<std::chrono::system_clock::time_point> ParseTime(std::string_view text);

}  // namespace railhead
