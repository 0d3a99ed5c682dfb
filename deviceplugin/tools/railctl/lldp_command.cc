// railctl lldp: the switch port that each rail is connected to, from railheadd's file.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

struct LldpOptions {
  Output output;
  RailFilter rail;
  bool strict = false;
};

int ShowLldp(const Root& root, const LldpOptions& options) {
  auto report = lldp::kLldpFile.Read(root);
  if (!report) return Complain(report.error(), kFailed);
  if (!*report) return Complain(lldp::kLldpFile.Missing(root), kFailed);
  const bool old = lldp::kLldpFile.IsOld(**report, std::chrono::system_clock::now());
  if (old)
    (void)std::fprintf(stderr, "railctl: as of %s: railheadd does not run\n",
                       FormatTime((*report)->time).c_str());
  std::vector<std::string> names;
  for (const lldp::RailNeighbor& rail : (*report)->rails) names.push_back(rail.rail);
  if (const auto there = options.rail.CheckAmong(names); !there) return Complain(there.error(), kFailed);
  options.rail.Keep(&(*report)->rails, &lldp::RailNeighbor::rail);
  options.output.PrintTableOf(**report, &lldp::LldpReport::rails);
  const auto is_bad = [&](const lldp::RailNeighbor& rail) {
    return rail.cabling == lldp::Cabling::kWrong ||
           (options.strict && rail.cabling == lldp::Cabling::kUnknown);
  };
  const bool bad = std::ranges::any_of((*report)->rails, is_bad);
  return old || bad ? kFailed : kDone;
}

}  // namespace

void AddLldpCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<LldpOptions>();
  CLI::App* command = app->add_subcommand(
      "lldp", "Show the switch port that each rail is connected to, and whether it is the right one");
  options->rail.AddTo(command);
  command->add_flag("--strict", options->strict, "count a rail whose switch is unknown as wrong");
  options->output.AddTo(command);
  options->output.AddWatchTo(command);
  help::Set(command,
            {.examples = {{"railctl lldp", "the switch port of each rail"},
                          {"railctl lldp --strict -o json", "for a script that accepts known switches only"}},
             .columns = ColumnsOf<lldp::RailNeighbor>(),
             .statuses = {{kFailed,
                           "a rail is connected to a wrong switch, or railheadd does not run or has no "
                           "fabric.json"}}});
  command->callback([&root, status, options] {
    *status = options->output.Watched([&] { return ShowLldp(root, *options); });
  });
}

}  // namespace railhead::railctl
