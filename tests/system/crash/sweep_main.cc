// crash_sweep: the kill sweep (sweep.h) in the namespace that it is started in, and
// `crash_sweep fake-root DIRECTORY`, which writes the sysfs of the stand-ins.
// Exit status: 0 no exception; 1 exceptions, the first of which is shown; 2 it could not run.
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/system/crash/sweep.h"

namespace railhead::crash {
namespace {

struct Line {
  Plugin plugin;
  SweepSetting setting;
  std::vector<std::string> variants;
  std::string label;
  std::string plant;
  std::int64_t seconds = 0;
  int vfs = 7;
  std::string daemon;
  std::string directory;
};

const std::map<std::string, Suppressed> kPlants = {
    {"rules", {RTM_DELRULE, std::nullopt}},
    {"move", {RTM_SETLINK, IFLA_NET_NS_FD}},
    {"vf", {RTM_SETLINK, IFLA_VFINFO_LIST}},
};

// Two PFs, pf0 and pf1, each with VFs pf0v0, pf0v1, ...: prints "NAME BDF" of each VF.
int FakeRoot(const Line& line) {
  testing::FakeSysfs sysfs(line.directory);
  for (int pf = 0; pf < 2; ++pf) {
    const std::string address = pf == 0 ? "0000:43:00.0" : "0000:83:00.0";
    const std::string name = "pf" + std::to_string(pf);
    sysfs.AddPf({.address = address, .netdev = name, .numa_node = pf});
    int number = 0;
    for (const auto& vf : sysfs.AddVfs(address, line.vfs))
      (void)std::printf("%sv%d %s\n", name.c_str(), number++, vf.c_str());
  }
  return 0;
}

bool Chosen(const Line& line, Variant variant) {
  if (NeedsReconciler(variant) && line.daemon.empty()) return false;
  if (line.variants.empty()) return line.setting.hardware || !NeedsHardware(variant);
  return std::find(line.variants.begin(), line.variants.end(), NameOf(variant)) != line.variants.end();
}

void Show(const Line& line, Variant variant, const Tally& tally) {
  (void)std::printf(
      "%-12s %-10s %4d of %4d calls (%d of them behind a change), %d reached, %d refused: %d exceptions\n",
      line.label.c_str(), NameOf(variant), tally.tried, tally.possible, tally.distinct, tally.reached,
      tally.refused, tally.exceptions);
  if (tally.exceptions > 0) (void)std::printf("%s\n", tally.first.c_str());
  (void)std::fflush(stdout);
}

int Run(const Line& line) {
  SweepSetting setting = line.setting;
  setting.world.root = Root(line.plugin.root);
  setting.world.namespaces = {{setting.pod.netns, "pod"}, {setting.other.netns, "other"}};
  setting.time = std::chrono::seconds(line.seconds);
  if (!line.plant.empty()) setting.planted = kPlants.at(line.plant);
  if (!line.daemon.empty()) setting.reconciler = {line.daemon, "--reconcile-once"};
  Adopt();
  Sweep sweep(setting, CniCalls(line.plugin));
  int exceptions = 0;
  int tried = 0;
  for (const Variant variant : kVariants) {
    if (!Chosen(line, variant)) continue;
    const auto tally = sweep.Run(variant);
    if (!tally) {
      (void)std::printf("%s %s: %s\n", line.label.c_str(), NameOf(variant), Describe(tally.error()).c_str());
      return tally.error().code == ErrorCode::kConflict ? 1 : 2;
    }
    Show(line, variant, *tally);
    exceptions += tally->exceptions;
    tried += tally->tried;
  }
  (void)std::printf("%-12s all        %d tried: %d exceptions\n", line.label.c_str(), tried, exceptions);
  if (tried == 0) return 2;
  return exceptions == 0 || !setting.restore.empty() ? 0 : 1;
}

int Main(int argc, char** argv) {
  Line line;
  line.plugin.type = "railhead";
  line.plugin.ifname = "net1";
  line.label = "sweep";
  line.setting.pod.id = "crash-first";
  line.setting.other.id = "crash-other";
  CLI::App app("Kills ADD and DEL at every system call");
  app.require_subcommand(1);
  auto* run = app.add_subcommand("run", "The sweep");
  run->add_option("--programs", line.plugin.directory, "Directory of the plugins")->required();
  run->add_option("--type", line.plugin.type, "The plugin");
  run->add_option("--config", line.plugin.config, "Network configuration, JSON")->required();
  run->add_option("--ifname", line.plugin.ifname, "CNI_IFNAME");
  run->add_option("--root", line.plugin.root, "RAILHEAD_ROOT");
  run->add_option("--pod", line.setting.pod.netns, "Path of the pod's namespace")->required();
  run->add_option("--other", line.setting.other.netns, "Path of the next pod's namespace")->required();
  run->add_option("--daemon", line.daemon, "railheadd, for the variants with its reconciler");
  run->add_option("--variant", line.variants, "Names of variants (sweep.h); default: all");
  run->add_flag("--hardware", line.setting.hardware, "The devices survive their pod's namespace");
  run->add_option("--percent", line.setting.percent, "Try at least this share of the calls");
  run->add_option("--seconds", line.seconds, "And go on until so many seconds are over, per variant");
  run->add_option("--seed", line.setting.seed, "Order of the calls");
  run->add_option("--plant", line.plant, "What every DEL leaves out: rules, move or vf")
      ->check(CLI::IsMember(kPlants));
  run->add_option(
      "--restore", line.setting.restore,
      "For other plugins: a command that makes the first state again; exceptions are only counted");
  run->add_option("--label", line.label, "Name of this sweep in its report");
  auto* fake = app.add_subcommand("fake-root", "Writes a sysfs of two PFs with VFs; prints name and address");
  fake->add_option("directory", line.directory, "Where")->required();
  fake->add_option("--vfs", line.vfs, "How many each");
  CLI11_PARSE(app, argc, argv);
  return fake->parsed() ? FakeRoot(line) : Run(line);
}

}  // namespace
}  // namespace railhead::crash

int main(int argc, char** argv) {
  return railhead::crash::Main(argc, argv);
}
