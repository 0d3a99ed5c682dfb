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
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/health/monitor.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/rules.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/json_reader.h"

namespace railhead::health {

// RecordedDevice: one device in a recording, with its latest observation.
//
// The lines of docs/reference/recording.md have only the differences to the device's line before. Fields that
// the first line of a device lacks are those of a default RecordedDevice: a PF that is present, bound,
// without link and port. A line has only counters whose value has changed: an equal value makes no difference
// to the rules.
// Threads: pure functions. Errors stick in the JsonReader.

struct RecordedDevice {
  HealthSubject subject;
  Observation seen;
  bool unread = false;  // could not be read: nothing was observed
};

// The state before its first line.
RecordedDevice NewRecordedDevice(const std::string& id);

// The differences of `now`, without time and name. Empty: none.
nlohmann::ordered_json DeviceDelta(const RecordedDevice& before, const RecordedDevice& now);
// `before` with the present observation. Counters that were not read keep their value.
RecordedDevice WithSeen(RecordedDevice before, const HealthSubject& subject, const Observation& seen);

// Reads what DeviceDelta wrote; the caller closes the reader.
void ApplyDelta(JsonReader* line, RecordedDevice* device);

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

// HealthRecorder: writes the observations of HealthWatch, so that an incident can be replayed afterwards.
//
//   recorder.Begin(now, rules, monitor);         // a tick
//   recorder.Observe(subject, seen); ...         // the same observations as the monitor's
//   auto kept = recorder.End(changed);
//
// Appends to /run/railhead/observations.jsonl (recording.h). A file of a MiB and more becomes
// observations.old.jsonl and replaces the older one. Rounds without a change are written once a minute, or
// with the next change. So a healthy node costs one write a minute and some 10 KB an hour. After an error the
// next round starts a new recording: a header marks the gap.
// Threads: one at a time. Errors: kIo; they affect only the recording.

inline constexpr std::size_t kLongestSegment = std::size_t{1} << 20;  // after its header

class HealthRecorder {
 public:
  explicit HealthRecorder(Root root, std::size_t longest = kLongestSegment)
      : root_(std::move(root)), longest_(longest) {}

  // Before the monitor observes anything in this tick. `now.steady` is in whole milliseconds.
  void Begin(HealthTime now, const HealthRules& rules, const HealthMonitor& monitor);
  void Renew(const std::string& id);
  void KeepOnly(const std::set<std::string>& ids);
  void Observe(const HealthSubject& subject, const Observation& seen);
  // `subject` could not be read, so the monitor did not observe it.
  void Miss(const HealthSubject& subject);
  // `changed`: the monitor found something.
  Result<void> End(bool changed);

 private:
  using Steady = std::chrono::steady_clock::time_point;

  void Start(HealthTime now, const HealthMonitor& monitor, bool continues);
  void Put(std::string_view key, const std::string& id);
  void PutDevice(RecordedDevice now);
  Result<void> Write();

  const Root root_;
  const std::size_t longest_;
  std::string node_;
  std::optional<Steady> begun_;       // t is counted from here; nullopt: a header comes first
  bool full_ = false;                 // the file is full: the next line starts another one
  std::optional<HealthRules> rules_;  // in force, as recorded
  Steady now_;
  std::map<std::string, RecordedDevice> written_;  // as the lines of this segment state them
  std::set<std::string> known_;                    // to a reader of the lines since the process began
  std::string pending_;
  std::size_t header_ = 0;  // bytes of the segment's header
  bool said_ = false;       // this round has a line
  bool urgent_ = false;     // `pending_` has more than rounds without a change
  Steady flushed_;
  bool whole_ = false;  // the file ends with a line's end
};

}  // namespace railhead::health
