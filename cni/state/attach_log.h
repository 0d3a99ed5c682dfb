// The log of attach timings: one JSON object per line for each ADD, with the duration of every phase.
// railheadd exports it. The line of a failed ADD has its pod and error, too, for `railctl why`. A DEL that
// binds a driver again adds a line, too.
//
// Bounded: at kMaxAttachLog bytes the file becomes attach.log.1, which it replaces. Each line is one
// write(2), so lines of several processes do not mix. A line that cannot be written is dropped: ADD does not
// fail for that. Threads: thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/state/journal_shape.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead {

inline constexpr std::size_t kMaxAttachLog = std::size_t{256} << 10;

struct AttachTiming {
  AttachmentKey key;
  std::size_t links = 0;
  std::string error;  // empty: attached
  // In order, without gaps: their sum is the total.
  std::vector<std::pair<std::string, std::chrono::microseconds>> phases;
  // Of a failed ADD.
  std::string hint;
  int code = 0;         // the CNI error code
  std::string pod;      // "NAMESPACE/NAME"; "": the runtime did not name it
  std::string pod_uid;  // likewise
  // When the line was written. LogAttachTiming() sets it.
  std::chrono::system_clock::time_point time;

  bool operator==(const AttachTiming&) const = default;
};

inline constexpr std::int64_t kLongestPhase = 86'400'000'000;  // a day, in microseconds

template <>
struct Shape<AttachTiming> {
  static void List(auto& f) {
    f("time", &AttachTiming::time, {.need = Need::kSparse, .time = TimeForm::kSeconds});
    f.Part(&AttachTiming::key);
    f("pod", &AttachTiming::pod, kSparseField);
    f("podUid", &AttachTiming::pod_uid, kSparseField);
    f("links", &AttachTiming::links);
    f("code", &AttachTiming::code, {.need = Need::kSparse, .min = 0});
    f("error", &AttachTiming::error, kSparseField);
    f("hint", &AttachTiming::hint, kSparseField);
    f("phasesUs", &AttachTiming::phases, {.need = Need::kRequired, .min = 0, .max = kLongestPhase});
    f.Output("totalUs", [](const AttachTiming& timing) {
      std::chrono::microseconds total{0};
      for (const auto& [phase, took] : timing.phases) total += took;
      return total.count();
    });
  }
};

void LogAttachTiming(const Root& root, const AttachTiming& timing);
// Logs that a DEL binds a device's driver again, and why. ReadAttachTimings() skips the line.
void LogRebind(const Root& root, const AttachmentKey& key, const std::string& device, const std::string& why);
// Appends a line of any kind, with the time.
void AppendToAttachLog(const Root& root, const nlohmann::ordered_json& record);
// All lines, the oldest first. Skips lines that cannot be read, such as one that was cut when the disk was
// full.
Result<std::vector<AttachTiming>> ReadAttachTimings(const Root& root);
// One line; nullopt: it is not a timing.
std::optional<AttachTiming> ParseAttachTiming(const std::string& line);

}  // namespace railhead
