// railctl health: what railheadd has seen of every device, from its state file.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"
#include "netns/json/record_io.h"

namespace railhead::railctl {
namespace {

struct HealthArguments {
  bool json = false;
  bool history = false;
  bool recording = false;
  std::string device;
};

void PrintDevices(const std::vector<health::DeviceHealth>& devices, bool as_json) {
  if (as_json) {
    return PrintJson({{"devices", ToJson(devices)}});
  }
  std::vector<Row> rows = {{"DEVICE", "PF", "STATE", "SINCE", "REASON"}};
  rows.reserve(devices.size() + 1);
  for (const health::DeviceHealth& device : devices) {
    rows.push_back({device.id, device.pf_name.empty() ? device.pf : device.pf_name,
                    health::HealthWord(device.healthy), FormatTime(device.since), TextOf(device.reasons)});
  }
  PrintTable(rows);
}

void PrintHistory(const std::vector<health::HealthRecord>& history, bool as_json) {
  if (as_json) {
    return PrintJson({{"changes", ToJson(history)}});
  }
  std::vector<Row> rows = {{"TIME", "DEVICE", "STATE", "REASON"}};
  rows.reserve(history.size() + 1);
  for (const health::HealthRecord& record : history) {
    rows.push_back(
        {FormatTime(record.time), WhoOf(record), health::HealthWord(record.healthy), WhatOf(record)});
  }
  PrintTable(rows);
}

// The device and, since its trouble is theirs, its PF in the history.
Result<void> Select(const std::string& device, health::HealthState* state) {
  const auto is_it = [&](const health::DeviceHealth& health) { return health.id == device; };
  const auto found = std::ranges::find_if(state->devices, is_it);
  if (found == state->devices.end()) {
    return Fail(ErrorCode::kNotFound, "railheadd knows no device " + device,
                "all that it knows: railctl health");
  }
  const std::string pf = found->pf;
  std::erase_if(state->history, [&](const health::HealthRecord& record) {
    return record.device != device && (record.device != pf || record.vfs == 0);
  });
  std::erase_if(state->devices, [&](const health::DeviceHealth& health) { return !is_it(health); });
  return {};
}

int PrintRecording(const Root& root) {
  const auto text = health::ReadOwnRecording(root);
  if (!text) return Complain(text.error(), kFailed);
  if (!*text) {
    return Complain({ErrorCode::kNotFound, "there is no " + health::RecordingPath(root),
                     "railheadd writes it when it runs with health rules: is it running?", 0},
                    kFailed);
  }
  const bool written = std::fwrite((*text)->data(), 1, (*text)->size(), stdout) == (*text)->size();
  return written && std::fflush(stdout) == 0 ? kDone : kFailed;
}

int RunHealth(const Root& root, const HealthArguments& options) {
  if (options.recording) return PrintRecording(root);
  auto state = health::ReadHealthState(root);
  if (!state) return Complain(state.error(), kFailed);
  if (!*state) {
    return Complain({ErrorCode::kNotFound, "there is no " + health::HealthStatePath(root),
                     "railheadd writes it when it runs with health rules: is it running?", 0},
                    kFailed);
  }
  if (!options.device.empty()) {
    if (auto selected = Select(options.device, &**state); !selected) {
      return Complain(selected.error(), kFailed);
    }
  }
  if (options.history) {
    PrintHistory((*state)->history, options.json);
    return kDone;
  }
  PrintDevices((*state)->devices, options.json);
  const bool well = std::ranges::all_of((*state)->devices, &health::DeviceHealth::healthy);
  return well ? kDone : kFailed;
}

}  // namespace

void AddHealthCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<HealthArguments>();
  CLI::App* command = app->add_subcommand("health", "which devices are well, since when, and why not");
  auto* json = command->add_flag("--json", options->json, "as JSON");
  auto* history =
      command->add_flag("--history", options->history, "the newest changes instead, oldest first");
  auto* device = command->add_option("device", options->device, "only this one: 0000:43:10.0");
  command
      ->add_flag("--recording", options->recording,
                 "instead all that was observed lately, line by line, for railctl replay")
      ->excludes(json)
      ->excludes(history)
      ->excludes(device);
  command->footer("Exit status 1 when a device is Unhealthy.");
  command->callback([options, &root, status] { *status = RunHealth(root, *options); });
}

std::string TextOf(const std::vector<health::HealthReason>& reasons) {
  std::string text;
  for (const health::HealthReason& reason : reasons) {
    if (!text.empty()) text += "; ";
    text.append(NameOf(reason.rule)).append(": ").append(reason.text);
  }
  return text;
}

std::string WhoOf(const health::HealthRecord& record) {
  const std::string vfs =
      record.vfs == 0 ? "" : std::to_string(record.vfs) + (record.vfs == 1 ? " VF" : " VFs");
  if (vfs.empty()) return record.device;
  return record.itself ? record.device + " and " + vfs : vfs + " of " + record.device;
}

std::string WhatOf(const health::HealthRecord& record) {
  std::string text = TextOf(record.started);
  if (!record.ended.empty())
    text.append(text.empty() ? "" : "; ").append("over: ").append(TextOf(record.ended));
  return text;
}

}  // namespace railhead::railctl
