// Keeps what HealthWatch observes, so that an incident can be replayed afterwards.
//
//   recorder.Begin(now, rules, monitor);         // a tick
//   recorder.Observe(subject, seen); ...         // all that the monitor is told, as it is told
//   auto kept = recorder.End(changed);
//
// Appends to /run/railhead/observations.jsonl (recording.h); what is a MiB and more becomes
// observations.old.jsonl, of which there is one. Rounds in which all is as it was are written once a minute,
// or when something changes. So a node that is well costs one write a minute and some 10 KB an hour. After an
// error the recording begins anew with the next round: a gap is told by a header, never by wrong lines.
// Threads: one at a time. Errors: kIo; nothing but the recording suffers.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "deviceplugin/services/health/monitor.h"
#include "deviceplugin/services/health/recorded_device.h"
#include "deviceplugin/services/health/recording.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

inline constexpr std::size_t kLongestSegment = std::size_t{1} << 20;  // after its header

class HealthRecorder {
 public:
  explicit HealthRecorder(Root root, std::size_t longest = kLongestSegment)
      : root_(std::move(root)), longest_(longest) {}

  // Before the monitor is told anything of this tick. `now.steady` is in whole milliseconds.
  void Begin(HealthTime now, const HealthRules& rules, const HealthMonitor& monitor);
  void Renew(const std::string& id);
  void KeepOnly(const std::set<std::string>& ids);
  void Observe(const HealthSubject& subject, const Observation& seen);
  // `subject` could not be read, so the monitor was not told of it.
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
  bool full_ = false;                 // the file: another one comes first
  std::optional<HealthRules> rules_;  // in force, as recorded
  Steady now_;
  std::map<std::string, RecordedDevice> written_;  // as the lines of this segment tell them
  std::set<std::string> known_;                    // to who reads from where the process began
  std::string pending_;
  std::size_t header_ = 0;  // bytes of the segment's header
  bool said_ = false;       // this round has a line
  bool urgent_ = false;     // `pending_` is more than rounds in which all was as it was
  Steady flushed_;
  bool whole_ = false;  // the file ends with a line's end
};

}  // namespace railhead
