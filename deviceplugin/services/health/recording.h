// A recording of health: the observations of a node's devices, line by line, written by railheadd or by
// people (docs/reference/recording.md has the format).
//
// A recording is one or more segments. Each begins with a header: the time, the rules, and the devices that
// were Unhealthy then. The lines after it are rounds: each is one observation of the node. A device has a
// line when its state differs from its line before; without a line it is unchanged. A device's first line
// after a header has its whole state. Bounds: kMaxRecording bytes, kMaxRecordedRounds rounds,
// kMaxRecordedDevices devices at a time. Threads: pure functions, plain values. Errors: kMalformed, kInvalid,
// naming file and line.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/health/recorded_device.h"
#include "deviceplugin/services/health/rules.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::health {

inline constexpr std::size_t kMaxRecording = std::size_t{16} << 20;
inline constexpr std::size_t kMaxRecordedRounds = 200'000;  // eleven days of the default interval
inline constexpr std::size_t kMaxRecordedDevices = 8192;

struct RecordedRound {
  std::chrono::milliseconds at{0};      // since the recording began; never less than before
  std::vector<HealthRules> rules;       // other rules from here on: none or one
  std::vector<std::string> renewed;     // VFs created again under old names
  std::vector<std::string> forgotten;   // the inventory no longer has them
  std::vector<RecordedDevice> devices;  // those that changed, whole
};

struct RecordedHeader {
  std::string node;
  std::chrono::system_clock::time_point time;  // to the millisecond
  std::chrono::milliseconds t{0};              // lines count `t` from `time` - `t`
  bool continues = false;                      // by the same process; else by a new one
  HealthRules rules;
  std::vector<DeviceHealth> devices;  // PFs, and every device that was Unhealthy
};

struct RecordedSegment {
  RecordedHeader header;
  std::chrono::milliseconds at{0};  // when it began, on the rounds' clock
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

// railheadd's own recording, and the one before it.
std::string RecordingPath(const Root& root);
std::string OldRecordingPath(const Root& root);
// Both as one text, without an incomplete line of a killed railheadd. nullopt: no recording exists.
Result<std::optional<std::string>> ReadOwnRecording(const Root& root);

}  // namespace railhead::health
