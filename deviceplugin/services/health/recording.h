// A recording of health: what was observed of a node's devices, line by line, as railheadd keeps it and as
// people write it (docs/incidents.md has the format).
//
// A recording is one or more segments. Each begins with a header: when, under which rules, and who was
// Unhealthy then; the lines after it are rounds, that is looks at the node. A device's state is told when it
// is another one than in its line before; what has no line in a round is as it was. A device's first line
// after a header tells all of it. Bounds: kMaxRecording bytes, kMaxRecordedRounds rounds, kMaxRecordedDevices
// devices at a time. Threads: pure functions, plain values. Errors: kMalformed, kInvalid, naming file and
// line.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/recorded_device.h"
#include "deviceplugin/services/health/rules.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

inline constexpr std::size_t kMaxRecording = std::size_t{16} << 20;
inline constexpr std::size_t kMaxRecordedRounds = 200'000;  // eleven days of the default interval
inline constexpr std::size_t kMaxRecordedDevices = 8192;

struct RecordedRound {
  std::chrono::milliseconds at{0};      // since the recording began; never less than before
  std::vector<HealthRules> rules;       // other rules from here on: none or one
  std::vector<std::string> renewed;     // were made anew under old names
  std::vector<std::string> forgotten;   // no longer there for the inventory
  std::vector<RecordedDevice> devices;  // those that changed, whole
};

struct RecordedHeader {
  std::string node;
  std::chrono::system_clock::time_point time;  // to the millisecond
  std::chrono::milliseconds t{0};              // `t` of lines is counted from `time` - `t`
  bool continues = false;                      // by the same process; else one began
  HealthRules rules;
  std::vector<DeviceHealth> devices;  // PFs, and all that were Unhealthy
};

struct RecordedSegment {
  RecordedHeader header;
  std::chrono::milliseconds at{0};  // when it began, as rounds have it
  std::vector<RecordedRound> rounds;
};

struct Recording {
  std::vector<RecordedSegment> segments;  // at least one
};

// `what` names the text in errors.
Result<Recording> ParseRecording(std::string_view text, const std::string& what);

std::string HeaderLine(const RecordedHeader& header);

// "2026-03-01T12:00:00.000Z"
std::string FormatMillis(std::chrono::system_clock::time_point time);

// railheadd's own recording, and what it was before that became too long.
std::string RecordingPath(const Root& root);
std::string OldRecordingPath(const Root& root);
// Both as one text; nullopt: there is none. What a killed railheadd wrote by half is left out.
Result<std::optional<std::string>> ReadOwnRecording(const Root& root);

}  // namespace railhead
