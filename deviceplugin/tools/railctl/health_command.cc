// railctl health: the health of every device, from railheadd's state file.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/print.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "deviceplugin/tools/railctl/subject.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

struct HealthArguments {
  Output output;
  RailFilter rail;
  bool history = false;
  bool recording = false;
  std::string device;
};

// What no resource gives out although one selects it: railheadd does not watch it.
std::vector<ExcludedDevice> Withheld(const NodeSnapshot& node) {
  auto excluded = NotAdvertised(node);
  std::erase_if(excluded, [](const ExcludedDevice& one) { return !one.selected; });
  return excluded;
}

// The devices and, since its faults are those of its VFs, their PFs in the history.
Result<void> Select(const Root& root, const std::string& which, health::HealthState* state) {
  std::vector<std::string> devices = {which};
  // One that has left the node is known by the state file alone.
  if (!Contains(state->devices, which, &health::DeviceHealth::id))
    devices = RH_TRY(FindSubject(root, which)).devices;
  std::erase_if(state->devices,
                [&](const health::DeviceHealth& health) { return !Contains(devices, health.id); });
  if (state->devices.empty()) {
    std::string hint = "see railctl health for all devices";
    if (const auto node = SnapshotOfThisNode(root)) {
      for (const ExcludedDevice& excluded : NotAdvertised(*node)) {
        if (Contains(devices, excluded.function->id))
          hint = excluded.function->id + " is not offered to kubelet: it " + excluded.because;
      }
    }
    return Fail(ErrorCode::kNotFound, "railheadd watches no device of '" + which + "'", std::move(hint));
  }
  std::erase_if(state->history, [&](const health::HealthRecord& record) {
    const bool with_vfs =
        record.vfs != 0 && Contains(state->devices, record.device, &health::DeviceHealth::pf);
    return !Contains(devices, record.device) && !with_vfs;
  });
  return {};
}

// Devices of the rail, and their changes.
Result<void> KeepRail(const Root& root, const RailFilter& filter, health::HealthState* state) {
  const auto rails = RH_TRY(RailsToFilterBy(root, filter));
  if (!rails) return {};
  std::map<std::string, std::string> of_device = rails->of_pf;
  for (const health::DeviceHealth& device : state->devices) of_device[device.id] = rails->OfPf(device.pf);
  filter.Keep(&state->devices, [&](const health::DeviceHealth& device) { return of_device[device.id]; });
  filter.Keep(&state->history, [&](const health::HealthRecord& record) { return of_device[record.device]; });
  return {};
}

int PrintRecording(const Root& root) {
  const auto text = health::ReadOwnRecording(root);
  if (!text) return Complain(text.error(), kFailed);
  if (!*text) {
    return Complain({ErrorCode::kNotFound, "no such file: " + health::RecordingPath(root),
                     "railheadd writes it when it runs with health rules: is it running?", 0},
                    kFailed);
  }
  const bool written = std::fwrite((*text)->data(), 1, (*text)->size(), stdout) == (*text)->size();
  return written && std::fflush(stdout) == 0 ? kDone : kFailed;
}

// Of the whole node: beside the devices that railheadd watches, those that it withholds from kubelet.
void PrintAll(const Root& root, const HealthArguments& options, const health::HealthState& state) {
  const auto node = SnapshotOfThisNode(root);
  const auto withheld = node && options.device.empty() && !options.rail.IsGiven()
                            ? Withheld(*node)
                            : std::vector<ExcludedDevice>();
  nlohmann::ordered_json more;
  if (!withheld.empty()) more["notOffered"] = ToJson(withheld);
  options.output.PrintList("devices", state.devices, std::move(more));
  if (!options.output.is_text()) return;
  for (const ExcludedDevice& one : withheld)
    (void)std::fprintf(stderr, "note: %s is not offered to kubelet: it %s\n", one.function->id.c_str(),
                       OneLine(one.because).c_str());
}

int RunHealth(const Root& root, const HealthArguments& options) {
  if (options.recording) return PrintRecording(root);
  auto state = health::kHealthFile.Read(root);
  if (!state) return Complain(state.error(), kFailed);
  if (!*state) return Complain(health::kHealthFile.Missing(root), kFailed);
  if (!options.device.empty()) {
    if (auto selected = Select(root, options.device, &**state); !selected) {
      return Complain(selected.error(), kFailed);
    }
  }
  if (auto kept = KeepRail(root, options.rail, &**state); !kept) return Complain(kept.error(), kFailed);
  if (options.history) {
    options.output.PrintList("changes", (*state)->history);
    return kDone;
  }
  PrintAll(root, options, **state);
  const bool healthy = std::ranges::all_of((*state)->devices, &health::DeviceHealth::healthy);
  return healthy ? kDone : kFailed;
}

}  // namespace

void AddHealthCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<HealthArguments>();
  CLI::App* command =
      app->add_subcommand("health", "Show the health of the devices, since when, and the reasons");
  auto* device = command->add_option(
      "DEVICE", options->device,
      "only this one, or those of a rail or pod: 0000:43:10.0, ens1f0, rail0, train/worker-0");
  auto* history =
      command->add_flag("--history", options->history, "print the newest changes instead, oldest first");
  auto* rail = options->rail.AddTo(command);
  auto* output = options->output.AddTo(command);
  auto* watch = options->output.AddWatchTo(command);
  command
      ->add_flag("--recording", options->recording,
                 "print the latest observations instead, line by line, for railctl health replay")
      ->excludes(output)
      ->excludes(watch)
      ->excludes(history)
      ->excludes(rail)
      ->excludes(device);
  help::Set(command,
            {.examples = {{"railctl health --rail rail0", "the PF of rail0 and its VFs"},
                          {"railctl health --history 0000:43:10.0", "what became of one device lately"}},
             .columns = ColumnsOf<health::DeviceHealth>(),
             .statuses = {{kFailed, "a device is Unhealthy, or railheadd has written no state"}}});
  AddHealthReplayCommand(command, root, status);
  // CLI11 runs it after the callback of a subcommand, too.
  command->callback([command, options, &root, status] {
    if (command->get_subcommands().empty())
      *status = options->output.Watched([&] { return RunHealth(root, *options); });
  });
}

}  // namespace railhead::railctl
