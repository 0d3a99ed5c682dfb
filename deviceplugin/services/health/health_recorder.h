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
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "deviceplugin/services/health/monitor.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/recorded_device.h"
#include "deviceplugin/services/health/rules.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::health {

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
