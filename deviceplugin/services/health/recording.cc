#include "deviceplugin/services/health/recording.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/health/state_file.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::health {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;
using OrderedJson = nlohmann::ordered_json;

constexpr std::int64_t kRecordingVersion = 1;
// These limits keep sums far from the end of a nanosecond clock. A process runs for less than a century, and
// a recording for less than a year. Both end before the year 2191.
constexpr std::int64_t kMostMillis = std::int64_t{36525} * 86400 * 1000;
constexpr milliseconds kLongestRecording{std::int64_t{366} * 86400 * 1000};
constexpr std::chrono::seconds kLatest{7'000'000'000};
constexpr std::size_t kLongestId = 64;

// RFC 3339 in UTC with or without a fraction of three digits.
std::optional<system_clock::time_point> ParseMillis(std::string_view text) {
  constexpr std::size_t kFraction = 5;  // ".123Z"
  if (text.size() <= kFraction || text[text.size() - kFraction] != '.') return ParseTime(text);
  const auto millis = ParseInt(std::string(text.substr(text.size() - kFraction + 1, 3)));
  const auto whole = ParseTime(std::string(text.substr(0, text.size() - kFraction)) + text.back());
  if (!whole || !millis || *millis < 0) return std::nullopt;
  return *whole + milliseconds(*millis);
}

// PCI addresses and names of the auxiliary bus.
bool IsDeviceId(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId &&
         std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7f && c != '/'; });
}

milliseconds RequiredMillis(JsonReader* reader, const char* key) {
  if (!reader->Has(key)) reader->Fail(key, "is required");
  return milliseconds(reader->Int(key, 0, kMostMillis).value_or(0));
}

class Parser {
 public:
  explicit Parser(std::string what) : what_(std::move(what)) {}

  Result<void> Line(std::string_view text) {
    ++number_;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return {};
    const std::string where = what_ + " line " + std::to_string(number_);
    const auto document = RH_TRY(JsonDocument::Parse(text, where, kMaxFileSize));
    JsonReader line = document.Root();
    if (line.Has("version")) {
      Header(&line);
    } else if (recording_.segments.empty()) {
      line.Fail("version", "the first line has to be a header",
                R"({"version":1,"node":"gpu-001","time":"2026-03-01T12:00:00.000Z"})");
    } else {
      Observed(&line);
    }
    line.Close();
    return line.status();
  }

  Result<Recording> Done() && {
    if (recording_.segments.empty())
      return Fail(ErrorCode::kMalformed, what_ + ": is empty, not even a header is there");
    return std::move(recording_);
  }

 private:
  RecordedSegment& Segment() { return recording_.segments.back(); }

  void Header(JsonReader* line) {
    RecordedHeader header;
    (void)line->Int("version", kRecordingVersion, kRecordingVersion);
    header.node = line->String("node").value_or("");
    const auto time = ParseMillis(line->RequiredString("time"));
    if (!time || time->time_since_epoch() < system_clock::duration::zero() ||
        time->time_since_epoch() > kLatest)
      line->Fail("time", "is not a time of the form 2026-03-01T12:00:00.000Z");
    header.time = time.value_or(system_clock::time_point{});
    header.t = milliseconds(line->Int("t", 0, kMostMillis).value_or(0));
    header.continues = line->Bool("continues").value_or(false);
    header.rules = ReadRecordedRules(*line);
    for (JsonReader& device : line->Objects("devices"))
      header.devices.push_back(ReadRecord<DeviceHealth>(device));
    if (header.devices.size() > kMaxRecordedDevices) line->Fail("devices", "are too many");
    if (!line->status()) return;
    Append(std::move(header));
  }

  // If another process began later, its header's time says when, unless the clock was set back.
  void Append(RecordedHeader header) {
    RecordedSegment segment;
    if (recording_.segments.empty()) {
      origin_ = header.t;
    } else if (header.continues) {
      segment.at = std::max(last_, header.t - origin_);
    } else {
      const RecordedSegment& before = Segment();
      const auto passed = std::chrono::floor<milliseconds>(header.time - before.header.time);
      segment.at = std::max(last_, before.at + passed);
      origin_ = header.t - segment.at;
    }
    last_ = segment.at;
    // The header's writer may not know the lines before it.
    devices_.clear();
    segment.header = std::move(header);
    recording_.segments.push_back(std::move(segment));
  }

  // The round at `t`. nullptr: no round can be there.
  RecordedRound* RoundAt(JsonReader* line, milliseconds t) {
    const milliseconds at = t - origin_;
    if (at < last_) {
      line->Fail("t", "is earlier than the line before");
      return nullptr;
    }
    if (at > kLongestRecording) {
      line->Fail("t", "a recording spans a year at most");
      return nullptr;
    }
    auto& rounds = Segment().rounds;
    if (rounds.empty() || rounds.back().at != at) {
      if (++rounds_ > kMaxRecordedRounds) {
        line->Fail("t", "more than " + std::to_string(kMaxRecordedRounds) + " rounds");
        return nullptr;
      }
      rounds.emplace_back().at = last_ = at;
    }
    return &rounds.back();
  }

  // {"t":T,"every":E,"until":U}: rounds without any change, from T to U every E.
  void Repeat(JsonReader* line, milliseconds t) {
    const milliseconds every(line->Int("every", 1, kMostMillis).value_or(1));
    const milliseconds until = RequiredMillis(line, "until");
    if (until < t) line->Fail("until", "is earlier than t");
    for (milliseconds at = t; line->status() && at <= until; at += every) (void)RoundAt(line, at);
  }

  void Observed(JsonReader* line) {
    const milliseconds t = RequiredMillis(line, "t");
    if (!line->status()) return;
    if (line->Has("every")) return Repeat(line, t);
    RecordedRound* round = RoundAt(line, t);
    if (round == nullptr) return;
    if (line->Has("health")) {
      round->rules = {ReadRecordedRules(*line)};
    } else if (line->Has("device")) {
      Device(line, round);
    }
  }

  void Device(JsonReader* line, RecordedRound* round) {
    const std::string id = line->RequiredString("device");
    if (!IsDeviceId(id)) return line->Fail("device", "is not the name of a device");
    if (line->Bool("forgotten").value_or(false)) {
      devices_.erase(id);
      std::erase_if(round->devices, [&](const RecordedDevice& other) { return other.subject.id == id; });
      round->forgotten.push_back(id);
      return;
    }
    if (line->Bool("renewed").value_or(false)) return round->renewed.push_back(id);
    const auto at = devices_.try_emplace(id, NewRecordedDevice(id)).first;
    if (devices_.size() > kMaxRecordedDevices) return line->Fail("device", "there are too many devices");
    const auto same = std::ranges::find_if(
        round->devices, [&](const RecordedDevice& other) { return other.subject.id == id; });
    if (same == round->devices.end()) at->second.seen.counters.clear();
    ApplyDelta(line, &at->second);
    if (at->second.subject.pf_id != id && !IsDeviceId(at->second.subject.pf_id))
      return line->Fail("pf", "is not the name of a device");
    if (same != round->devices.end()) {
      *same = at->second;
      return;
    }
    round->devices.push_back(at->second);
  }

  std::string what_;
  std::size_t number_ = 0;
  std::size_t rounds_ = 0;
  milliseconds origin_{0};  // `t` of lines where `at` is 0
  milliseconds last_{0};
  std::map<std::string, RecordedDevice> devices_;
  Recording recording_;
};

}  // namespace

Result<Recording> ParseRecording(std::string_view text, const std::string& what) {
  if (text.size() > kMaxRecording) {
    return Fail(ErrorCode::kMalformed, what + ": larger than " + std::to_string(kMaxRecording) + " bytes");
  }
  Parser parser(what);
  while (!text.empty()) {
    const auto end = text.find('\n');
    RH_TRY(parser.Line(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return std::move(parser).Done();
}

std::string HeaderLine(const RecordedHeader& header) {
  OrderedJson json = {
      {"version", kRecordingVersion}, {"node", header.node}, {"time", FormatMillis(header.time)}};
  if (header.t.count() != 0) json["t"] = header.t.count();
  if (header.continues) json["continues"] = true;
  json["health"] = HealthRulesAsJson(header.rules);
  if (!header.devices.empty()) json["devices"] = OrderedJson::array();
  for (const DeviceHealth& device : header.devices) json["devices"].push_back(ToJson(device));
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string FormatMillis(system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto millis = std::chrono::floor<milliseconds>(time - whole).count();
  std::array<char, 8> fraction{};
  (void)std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(millis));
  std::string text = FormatTime(whole);
  text.pop_back();
  return text + fraction.data();
}

std::string RecordingPath(const Root& root) {
  return root.Path("/run/railhead/observations.jsonl");
}

std::string OldRecordingPath(const Root& root) {
  return root.Path("/run/railhead/observations.old.jsonl");
}

Result<std::optional<std::string>> ReadOwnRecording(const Root& root) {
  std::optional<std::string> all;
  for (const std::string& path : {OldRecordingPath(root), RecordingPath(root)}) {
    auto text = RH_TRY(ReadFile(path, kMaxRecording));
    if (!text) continue;
    text->resize(text->rfind('\n') + 1);  // npos + 1 is 0
    all = all.value_or("") + *text;
  }
  return all;
}

}  // namespace railhead::health
