// crash_stress: many pods at once with random kills (stress.h), in the namespace that it is started in. Exit
// status: 0 no fault; 1 faults, which are shown; 2 it could not run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "tests/system/crash/stress.h"

namespace railhead::crash {
namespace {

constexpr std::size_t kMostShown = 10;

void ShowTimes(const char* what, std::vector<double> times) {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  (void)std::printf("  %s, %zu undisturbed: median %.1f ms, 90 %% %.1f, 99 %% %.1f, longest %.1f\n", what,
                    times.size(), at(0.5), at(0.9), at(0.99), times.back());
}

int Main(int argc, char** argv) {
  Plugin plugin;
  StressSetting setting;
  std::string label = "stress";
  plugin.type = "railhead";
  plugin.ifname = "net1";
  CLI::App app("Attaches and detaches many pods at once, killing some calls");
  app.add_option("--programs", plugin.directory, "Directory of the plugins")->required();
  app.add_option("--config", plugin.config, "Network configuration, JSON, with DEVICE in it")->required();
  app.add_option("--root", plugin.root, "RAILHEAD_ROOT");
  app.add_option("--netns", setting.netns_directory, "Where the pods' namespaces are made")->required();
  app.add_option("--device", setting.devices, "BDFs")->required();
  app.add_option("--pods", setting.pods, "How many");
  app.add_option("--workers", setting.workers, "How many at once");
  app.add_option("--kills", setting.kill_percent, "Percentage of calls that are killed");
  app.add_option("--checks", setting.check_percent, "Percentage of attachments that CHECK looks at");
  app.add_option("--early", setting.early_percent,
                 "Percentage of devices that are handed on before DEL is over");
  app.add_option("--seed", setting.seed, "Of all choices");
  app.add_option("--label", label, "Name in the report");
  CLI11_PARSE(app, argc, argv);
  setting.world.root = Root(plugin.root);
  Adopt();
  const auto report = RunStress(setting, plugin);
  if (!report) {
    (void)std::printf("crash_stress: %s\n", Describe(report.error()).c_str());
    return 2;
  }
  (void)std::printf(
      "%s: %d pods by %d workers on %zu devices in %.1f s: %d attached, %d ADDs and %d DELs killed, "
      "%d told to try again, %zu wrong\n",
      label.c_str(), setting.pods, setting.workers, setting.devices.size(), report->seconds, report->attached,
      report->killed_adds, report->killed_dels, report->retried, report->wrong.size());
  ShowTimes("ADD", report->add_ms);
  ShowTimes("DEL", report->del_ms);
  for (std::size_t i = 0; i < report->wrong.size() && i < kMostShown; ++i)
    (void)std::printf("WRONG: %s\n", report->wrong[i].c_str());
  return report->wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace railhead::crash

int main(int argc, char** argv) {
  return railhead::crash::Main(argc, argv);
}
