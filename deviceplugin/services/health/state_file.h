// /run/railhead/health.json: every device's state, and the newest changes with reason and time.
//
// railheadd writes it after every change and reads it when it starts. `railctl health` reads it, too. A
// reboot removes the file: it resets counters and links, too. A fault of a PF is one entry of the history,
// however many VFs it affects. Otherwise one cut cable would push out every other entry.
// Threads: thread-safe functions, one writer.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/health/observation.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/text.h"
#include "netns/json/record.h"
#include "netns/json/state_file.h"

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

inline constexpr StateFile<HealthState> kHealthFile{
    .path = "/run/railhead/health.json",
    .what = "saving health",
    .writer = "railheadd writes it when it runs with health rules",
};

// The changes of one observation round as entries.
std::vector<HealthRecord> RecordsOf(const std::vector<HealthChange>& changes);
// Appends the same, and removes the oldest entries beyond kHealthHistory.
void AppendHistory(const std::vector<HealthChange>& changes, std::vector<HealthRecord>* history);

// For people, as columns of tables.

// "link: PF pf0 has no carrier; rdmaPort: ..."
std::string TextOf(const std::vector<HealthReason>& reasons);
// "0000:43:00.0 and 8 VFs"
std::string WhoOf(const HealthRecord& record);
// The reasons that began, and those that ended.
std::string WhatOf(const HealthRecord& record);

// "Healthy", "Unhealthy": kubelet's words.
inline constexpr const char* kHealthy = "Healthy";
inline constexpr const char* kUnhealthy = "Unhealthy";
inline constexpr FieldRules kHealthWord{
    .need = Need::kRequired, .no = kUnhealthy, .yes = kHealthy, .column = "STATE"};

}  // namespace railhead::health

// The fields of the state file, which railctl prints, too.
//
// Readers ignore unknown fields, and reasons with another version's rules: this version cannot tell when
// those end.
template <>
struct railhead::Shape<railhead::health::HealthReason> {
  using Reason = health::HealthReason;
  static void List(auto& f) {
    f("rule", &Reason::rule, kRequiredField);
    f("device", &Reason::device, kRequiredField);
    f("text", &Reason::text, kRequiredField);
    f("since", &Reason::since, kRequiredField);
    f("counter", &Reason::counter, kSparseField);
  }
  static bool IsKnown(auto& reader) {
    return FromWord<health::HealthRule>(reader.RequiredString("rule")).has_value();
  }
};

template <>
struct railhead::Shape<railhead::health::DeviceHealth> {
  using Device = health::DeviceHealth;
  static void List(auto& f) {
    f("device", &Device::id, {.need = Need::kRequired, .column = "DEVICE"});
    f("pf", &Device::pf, kRequiredField);
    f("pfName", &Device::pf_name);
    f.Column("PF", [](const Device& device) { return device.pf_name.empty() ? device.pf : device.pf_name; });
    f("vf", &Device::is_vf);
    f("state", &Device::healthy, health::kHealthWord);
    f("since", &Device::since, {.need = Need::kRequired, .column = "SINCE"});
    f("reasons", &Device::reasons);
    f.Column("REASON", [](const Device& device) { return health::TextOf(device.reasons); });
  }
};

template <>
struct railhead::Shape<railhead::health::HealthRecord> {
  using Record = health::HealthRecord;
  static void List(auto& f) {
    f("time", &Record::time, kRequiredField);
    f.Column("TIME", [](const Record& record) { return FormatTime(record.time); });
    f("device", &Record::device, kRequiredField);
    f.Column("DEVICE", &health::WhoOf);
    f("itself", &Record::itself);
    f("vfs", &Record::vfs, {.max = 65536});
    f("state", &Record::healthy, health::kHealthWord);
    f("started", &Record::started);
    f("ended", &Record::ended);
    f.Column("REASON", &health::WhatOf);
  }
};

template <>
struct railhead::Shape<railhead::health::HealthState> {
  static void List(auto& f) {
    f.Version(1);
    f("devices", &health::HealthState::devices);
    f("changes", &health::HealthState::history);
  }
};
