// railctl replay: what rules of health make, or would have made, of what railheadd has recorded.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/replay.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"
#include "netns/base/files.h"
#include "netns/json/json_reader.h"
#include "netns/json/record_io.h"

namespace railhead::railctl {
namespace {

using std::chrono::milliseconds;

struct ReplayArguments {
  std::string file;
  std::string health;
  bool json = false;
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

// The object `health` itself, a file that is it, or a fabric.json that has it.
Result<health::HealthRules> RulesOf(const std::string& given) {
  if (given.starts_with('{') || given == "false") return health::ParseHealthRules(given, "--health");
  const auto text = RH_TRY(ReadFile(given));
  if (!text)
    return Fail(ErrorCode::kNotFound, "there is no " + given, "--health takes a file or the object itself");
  const auto document = RH_TRY(JsonDocument::Parse(*text, given));
  JsonReader reader = document.Root();
  RH_TRY(reader.status());
  if (!reader.Has("health") && !reader.Has("version")) return health::ParseHealthRules(*text, given);
  health::HealthRules rules = health::ReadHealthRules(reader);
  RH_TRY(reader.status());
  return rules;
}

Result<health::Recording> ReadIt(const Root& root, const std::string& file) {
  const std::string what = file.empty() ? health::RecordingPath(root) : file;
  const auto text =
      RH_TRY(file.empty() ? health::ReadOwnRecording(root) : ReadFile(file, health::kMaxRecording));
  if (!text) {
    return Fail(ErrorCode::kNotFound, "there is no " + what,
                file.empty() ? "railheadd writes it when it runs with health rules: is it running?" : "");
  }
  return health::ParseRecording(*text, what);
}

const health::RecordedHeader& FirstHeader(const health::Recording& recording) {
  return recording.segments.front().header;
}

std::vector<Row> TimelineRows(const health::Replayed& replayed) {
  std::vector<Row> rows = {{"AFTER", "TIME", "DEVICE", "STATE", "REASON"}};
  for (const health::DeviceHealth& device : replayed.begin) {
    if (device.healthy) continue;
    rows.push_back(
        {"before", FormatTime(device.since), device.id, health::HealthWord(false), TextOf(device.reasons)});
  }
  for (const health::ReplayedRound& round : replayed.rounds) {
    for (const health::HealthRecord& record : RecordsOf(round.changes)) {
      rows.push_back({After(round.at), FormatTime(record.time), WhoOf(record),
                      health::HealthWord(record.healthy), WhatOf(record)});
    }
  }
  return rows;
}

nlohmann::json TimelineJson(const health::Recording& recording, const health::Replayed& replayed) {
  nlohmann::json changes = nlohmann::json::array();
  for (const health::ReplayedRound& round : replayed.rounds) {
    for (const health::HealthRecord& record : RecordsOf(round.changes)) {
      auto json = ToJson(record);
      json["afterMs"] = round.at.count();
      changes.push_back(nlohmann::json(json));
    }
  }
  nlohmann::json before = nlohmann::json::array();
  for (const health::DeviceHealth& device : replayed.begin) {
    if (!device.healthy) before.push_back(nlohmann::json(ToJson(device)));
  }
  return {
      {"node", FirstHeader(recording).node},   {"time", health::FormatMillis(FirstHeader(recording).time)},
      {"durationMs", replayed.lasted.count()}, {"looks", replayed.looks},
      {"before", std::move(before)},           {"changes", std::move(changes)},
      {"devices", ToJson(replayed.end)}};
}

void PrintTimeline(const health::Recording& recording, const health::Replayed& replayed) {
  const health::RecordedHeader& header = FirstHeader(recording);
  (void)std::printf("%s, %s in %zu looks from %s\n", header.node.empty() ? "a node" : header.node.c_str(),
                    After(replayed.lasted).c_str(), replayed.looks,
                    health::FormatMillis(header.time).c_str());
  const auto rows = TimelineRows(replayed);
  if (rows.size() > 1) {
    PrintTable(rows);
  } else {
    (void)std::printf("no device was Unhealthy\n");
  }
}

int RunReplay(const Root& root, const ReplayArguments& arguments) {
  std::optional<health::HealthRules> rules;
  if (!arguments.health.empty()) {
    auto given = RulesOf(arguments.health);
    if (!given) return Complain(given.error(), kBadConfig);
    rules = *std::move(given);
  }
  const auto recording = ReadIt(root, arguments.file);
  if (!recording) return Complain(recording.error(), kFailed);
  const health::Replayed replayed = Replay(*recording, rules);
  const auto notes = rules ? Missing(*recording, *rules) : std::vector<std::string>{};
  if (arguments.json) {
    nlohmann::json json = TimelineJson(*recording, replayed);
    json["notes"] = notes;
    PrintJson(json);
    return kDone;
  }
  PrintTimeline(*recording, replayed);
  for (const std::string& note : notes) (void)std::printf("note: %s\n", note.c_str());
  return kDone;
}

}  // namespace

void AddReplayCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<ReplayArguments>();
  CLI::App* command = app->add_subcommand("replay", "what rules of health make of a recorded incident");
  command->add_option("file", options->file,
                      "what railctl health --recording printed; default: of this node, now");
  command->add_option("--health", options->health,
                      "by these rules: the object health, or a file of it, or a fabric.json");
  command->add_flag("--json", options->json, "as JSON");
  command->footer(
      "Exit status 0 whoever was Unhealthy; 1 the recording cannot be read; 3 the rules are wrong.");
  command->callback([options, &root, status] { *status = RunReplay(root, *options); });
}

}  // namespace railhead::railctl
