// soak: runs a node for a while (soak.h), in the namespace that it is started in. Exit status: 0 no fault; 1
// faults, which are shown; 2 it could not run.
#include <linux/rtnetlink.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "tests/system/soak/soak.h"

namespace railhead::soak {
namespace {

struct Line {
  SoakSetting setting;
  std::vector<std::string> devices;
  std::vector<std::string> slots;
  int reuse_delay = 0;
  std::string plant;
};

const std::map<std::string, crash::Suppressed> kPlants = {
    {"altnames", {RTM_DELLINKPROP, std::nullopt}},
    {"vf", {RTM_SETLINK, IFLA_VFINFO_LIST}},
};
constexpr std::chrono::seconds kPlantedPatience{10};

void Show(const Line& line, const SoakReport& report) {
  (void)std::printf("%d rounds in %.1f s\n", report.rounds, report.seconds);
  for (const auto& [act, count] : report.counts) (void)std::printf("  %-20s %5d\n", act.c_str(), count);
  (void)std::printf("longest:");
  for (const auto& [seconds, call] : report.longest) (void)std::printf(" %s %.1f s,", call.c_str(), seconds);
  (void)std::printf("\nrefused:");
  for (const auto& [code, count] : report.codes) (void)std::printf(" code %d: %d,", code, count);
  (void)std::printf(" %zu wrong\n", report.wrong.size());
  for (const auto& wrong : report.wrong) (void)std::printf("WRONG: %s\n", wrong.c_str());
  if (report.wrong.empty()) return;
  (void)std::printf("to repeat: --seed %llu --rounds %d\n",
                    static_cast<unsigned long long>(line.setting.seed), report.rounds);
}

int Run(Line& line) {
  for (const auto& device : line.devices) {
    // BDF=NAME: the host's name for it.
    const auto at = device.find('=');
    Slot slot;
    slot.device = device.substr(0, at);
    if (at != std::string::npos) slot.host_name = device.substr(at + 1);
    line.setting.slots.push_back(slot);
  }
  for (const auto& id : line.slots) {
    Slot slot;
    slot.device = id;
    slot.late = true;
    line.setting.slots.push_back(slot);
  }
  line.setting.node.reuse_delay = std::chrono::seconds(line.reuse_delay);
  if (!line.plant.empty()) {
    line.setting.node.planted = kPlants.at(line.plant);
    line.setting.node.patience = kPlantedPatience;
  }
  (void)std::printf("seed %llu, %zu slots\n", static_cast<unsigned long long>(line.setting.seed),
                    line.setting.slots.size());
  (void)std::fflush(stdout);
  crash::Adopt();
  const auto report = RunSoak(line.setting);
  if (!report) {
    (void)std::printf("soak: %s\n", Describe(report.error()).c_str());
    return 2;
  }
  Show(line, *report);
  return report->wrong.empty() ? 0 : 1;
}

int Main(int argc, char** argv) {
  Line line;
  NodeSetting& node = line.setting.node;
  node.plugin.type = "railhead";
  node.plugin.ifname = "net1";
  CLI::App app("A node with pods that behave badly, for a while");
  app.add_option("--programs", node.plugin.directory, "Directory of the plugins")->required();
  app.add_option("--config", node.plugin.config,
                 "Network configuration, JSON, with DEVICE and SETTINGS in it")
      ->required();
  app.add_option("--root", node.plugin.root, "RAILHEAD_ROOT");
  app.add_option("--daemon", node.daemon, "railheadd and its arguments, one text")
      ->required()
      ->delimiter(' ');
  app.add_option("--log", node.log, "Of railheadd")->required();
  app.add_option("--netns", node.netns_directory, "Where the pods' namespaces are made")->required();
  app.add_option("--device", line.devices, "BDF=NAME of each VF")->required();
  app.add_option("--slot", line.slots, "Ids of slots of late binding");
  app.add_option("--reuse-delay", line.reuse_delay, "reuseDelaySeconds of fabric.json");
  app.add_flag("--hardware", node.hardware, "The devices survive their pod's namespace");
  app.add_option("--seconds", line.setting.seconds, "How long, at least");
  app.add_option("--rounds", line.setting.rounds, "How many rounds, at most");
  app.add_option("--seed", line.setting.seed, "Of all choices");
  app.add_option("--plant", line.plant, "What every DEL leaves out: altnames or vf")
      ->check(CLI::IsMember(kPlants));
  app.add_flag("--verbose", line.setting.verbose, "Print what is drawn");
  CLI11_PARSE(app, argc, argv);
  return Run(line);
}

}  // namespace
}  // namespace railhead::soak

int main(int argc, char** argv) {
  return railhead::soak::Main(argc, argv);
}
