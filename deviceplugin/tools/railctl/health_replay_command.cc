// railctl health replay: applies health rules to the observations that railheadd has recorded.
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/replay.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/json/json_reader.h"

namespace railhead::railctl {
namespace {

using std::chrono::milliseconds;

struct ReplayArguments {
  std::string file;
  std::string health;
  Output output;
};

// "0:10:05", and milliseconds where there are any.
std::string After(milliseconds at) {
  const auto seconds = at.count() / 1000;
  char text[48];
  (void)std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", static_cast<long long>(seconds / 3600),
                      static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  std::string after = text;
  if (at.count() % 1000 == 0) return after;
  (void)std::snprintf(text, sizeof text, ".%03d", static_cast<int>(at.count() % 1000));
  return after + text;
}

struct TimelineChange {
  std::optional<milliseconds> at;  // nullopt: before the recording
  health::HealthRecord record;

  static void List(auto& f) {
    f.Column("AFTER", [](const TimelineChange& it) { return it.at ? After(*it.at) : "before"; });
    f.Part(&TimelineChange::record);
    f("afterMs", &TimelineChange::at);
  }
};

struct Timeline {
  health::RecordedHeader header;
  health::ReplayResult replayed;
  std::vector<health::DeviceHealth> before;  // that were Unhealthy
  std::vector<TimelineChange> changes;
  std::vector<std::string> notes;

  static void List(auto& f) {
    f.Output("node", [](const Timeline& it) { return it.header.node; });
    f.Output("time", [](const Timeline& it) { return health::FormatMillis(it.header.time); });
    f.Part(&Timeline::replayed, [](auto& part) {
      part("durationMs", &health::ReplayResult::lasted);
      part("rounds", &health::ReplayResult::round_count);
      part("devices", &health::ReplayResult::end);
    });
    f("before", &Timeline::before);
    f("changes", &Timeline::changes);
    f("notes", &Timeline::notes);
  }
};

// The object `health` itself, a file that is it, or a fabric.json that has it.
Result<health::HealthRules> ReadRules(const std::string& value) {
  if (value.starts_with('{') || value == "false") return health::ParseHealthRules(value, "--health");
  const auto text = RH_TRY(ReadFile(value));
  if (!text)
    return Fail(ErrorCode::kNotFound, "no such file: " + value, "--health takes a file or the object itself");
  const auto document = RH_TRY(JsonDocument::Parse(*text, value));
  JsonReader reader = document.Root();
  RH_TRY(reader.status());
  if (!reader.Has("health") && !reader.Has("version")) return health::ParseHealthRules(*text, value);
  health::HealthRules rules = health::ReadHealthRules(reader);
  RH_TRY(reader.status());
  return rules;
}

Result<health::Recording> ReadRecording(const Root& root, const std::string& file) {
  const std::string what = file.empty() ? health::RecordingPath(root) : file;
  const auto text =
      RH_TRY(file.empty() ? health::ReadOwnRecording(root) : ReadFile(file, health::kMaxRecording));
  if (!text) {
    return Fail(ErrorCode::kNotFound, "no such file: " + what,
                file.empty() ? "railheadd writes it when it runs with health rules: is it running?" : "");
  }
  return health::ParseRecording(*text, what);
}

const health::RecordedHeader& FirstHeader(const health::Recording& recording) {
  return recording.segments.front().header;
}

Timeline TimelineOf(const health::Recording& recording, const health::ReplayResult& replayed,
                    std::vector<std::string> notes) {
  Timeline timeline{FirstHeader(recording), replayed, {}, {}, std::move(notes)};
  for (const health::DeviceHealth& device : replayed.begin) {
    if (!device.healthy) timeline.before.push_back(device);
  }
  for (const health::ReplayRound& round : replayed.rounds) {
    for (const health::HealthRecord& record : RecordsOf(round.changes))
      timeline.changes.push_back({round.at, record});
  }
  return timeline;
}

void PrintTimeline(const Output& output, const Timeline& timeline) {
  (void)std::printf("%s, %s in %zu rounds from %s\n",
                    timeline.header.node.empty() ? "a node" : timeline.header.node.c_str(),
                    After(timeline.replayed.lasted).c_str(), timeline.replayed.round_count,
                    health::FormatMillis(timeline.header.time).c_str());
  std::vector<TimelineChange> rows;
  for (const health::DeviceHealth& device : timeline.before) {
    rows.push_back({std::nullopt, {device.since, device.id, true, 0, false, device.reasons, {}}});
  }
  rows.insert(rows.end(), timeline.changes.begin(), timeline.changes.end());
  if (!rows.empty()) {
    output.PrintTable(rows);
  } else {
    (void)std::printf("no device was Unhealthy\n");
  }
  for (const std::string& note : timeline.notes) (void)std::printf("note: %s\n", note.c_str());
}

int RunReplay(const Root& root, const ReplayArguments& arguments) {
  std::optional<health::HealthRules> rules;
  if (!arguments.health.empty()) {
    auto read = ReadRules(arguments.health);
    if (!read) return Complain(read.error(), kBadConfig);
    rules = *std::move(read);
  }
  const auto recording = ReadRecording(root, arguments.file);
  if (!recording) return Complain(recording.error(), kFailed);
  const health::ReplayResult replayed = Replay(*recording, rules);
  const Timeline timeline =
      TimelineOf(*recording, replayed, rules ? Missing(*recording, *rules) : std::vector<std::string>{});
  if (arguments.output.is_text()) {
    PrintTimeline(arguments.output, timeline);
  } else {
    arguments.output.PrintData(ToJson(timeline));
  }
  return kDone;
}

}  // namespace

void AddHealthReplayCommand(CLI::App* health, const Root& root, int* status) {
  auto options = std::make_shared<ReplayArguments>();
  CLI::App* command = health->add_subcommand("replay", "Apply health rules to a recorded incident");
  command->add_option("file", options->file,
                      "the output of railctl health --recording; default: this node's recording");
  command->add_option("--health", options->health,
                      "use these rules: the object health, a file with it, or a fabric.json");
  options->output.AddTo(command);
  help::Set(command,
            {.examples = {{"railctl health replay", "this node's recording, with the rules that it had"},
                          {"railctl health replay incident.jsonl --health rules.json",
                           "what other rules would have done"}},
             .columns = ColumnsOf<TimelineChange>(),
             .statuses = {{kDone, "done, also with Unhealthy devices"},
                          {kFailed, "the recording cannot be read"},
                          {kBadConfig, "the rules are invalid"}}});
  command->callback([options, &root, status] { *status = RunReplay(root, *options); });
}

}  // namespace railhead::railctl
