// crash_daemon: kills railheadd before each of its changes; see daemon_sweep.h.
//
// Exit status: 0 no exception; 1 exceptions, with the first of each scenario; 2 an undisturbed run fails, or
// nothing was tried.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "tests/system/crash/daemon_sweep.h"

namespace railhead::crash {
namespace {

struct Line {
  DaemonSetting setting;
  std::vector<std::string> scenarios;
  double percent = 100;
  std::int64_t seconds = 0;
  std::uint64_t seed = 0;
  bool verbose = false;
};

bool Chosen(const Line& line, const char* name) {
  return line.scenarios.empty() ||
         std::find(line.scenarios.begin(), line.scenarios.end(), name) != line.scenarios.end();
}

void Show(const char* name, const DaemonTally& tally) {
  (void)std::printf("%-10s %4d of %4d changes, %4d killed: %d exceptions\n", name, tally.tried,
                    tally.possible, tally.killed, tally.exceptions);
  if (tally.exceptions > 0) (void)std::printf("%s\n", tally.first.c_str());
  (void)std::fflush(stdout);
}

int Run(const Line& line) {
  Adopt();
  DaemonSweep sweep(line.setting, line.seed, [&](const DaemonTry& done) {
    if (!line.verbose) return;
    (void)std::printf("  change %3d, %5lld ms, %s%s\n", done.at, static_cast<long long>(done.took.count()),
                      done.outcome ? "" : "EXCEPTION, ",
                      done.before.empty() ? "not reached" : done.before.c_str());
    (void)std::fflush(stdout);
  });
  int killed = 0;
  int exceptions = 0;
  for (const Scenario& scenario : DaemonScenarios()) {
    if (!Chosen(line, scenario.name)) continue;
    const auto tally = sweep.Run(scenario, line.percent, std::chrono::seconds(line.seconds));
    if (!tally) {
      (void)std::printf("%s\n", Describe(tally.error()).c_str());
      return 2;
    }
    Show(scenario.name, *tally);
    killed += tally->killed;
    exceptions += tally->exceptions;
  }
  (void)std::printf("railheadd  %d kills: %d exceptions\n", killed, exceptions);
  if (killed == 0) return 2;
  return exceptions == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  Line line;
  line.setting.first.id = "crash-first";
  line.setting.other.id = "crash-other";
  std::vector<std::string> names;
  names.reserve(DaemonScenarios().size());
  for (const Scenario& scenario : DaemonScenarios()) names.emplace_back(scenario.name);
  CLI::App app("Kills railheadd before every change that it makes");
  app.add_option("--programs", line.setting.programs, "Directory of railheadd, railhead, railhead-ipam")
      ->required();
  app.add_option("--root", line.setting.root, "RAILHEAD_ROOT, with the sysfs of crash_sweep fake-root")
      ->required();
  app.add_option("--pod", line.setting.first.netns, "Path of the first pod's namespace")->required();
  app.add_option("--other", line.setting.other.netns, "Path of the other pod's namespace")->required();
  app.add_option("--scenario", line.scenarios, "Names of scenarios (daemon_sweep.h); default: all")
      ->check(CLI::IsMember(names));
  app.add_option("--percent", line.percent, "Kill at least at this share of the changes");
  app.add_option("--seconds", line.seconds, "And go on until so many seconds are over, per scenario");
  app.add_option("--seed", line.seed, "Order of the changes");
  app.add_flag("--verbose", line.verbose, "Print before what it was killed each time");
  CLI11_PARSE(app, argc, argv);
  return Run(line);
}

}  // namespace
}  // namespace railhead::crash

int main(int argc, char** argv) {
  return railhead::crash::Main(argc, argv);
}
