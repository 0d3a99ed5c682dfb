// railctl leaves: which switch port each rail hangs on, from railheadd's file.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

struct LeavesOptions {
  Output output;
  bool strict = false;
};

int ShowLeaves(const Root& root, const LeavesOptions& options) {
  const auto report = lldp::kLeafFile.Read(root);
  if (!report) return Complain(report.error(), kFailed);
  if (!*report) return Complain(lldp::kLeafFile.Missing(root), kFailed);
  const bool old = lldp::kLeafFile.IsOld(**report, std::chrono::system_clock::now());
  if (old)
    (void)std::fprintf(stderr, "railctl: as of %s: railheadd does not run\n",
                       FormatTime((*report)->time).c_str());
  options.output.PrintTableOf(**report, &lldp::LeafReport::rails);
  const auto is_bad = [&](const lldp::RailLeaf& rail) {
    return rail.cabling == lldp::Cabling::kWrong ||
           (options.strict && rail.cabling == lldp::Cabling::kUnknown);
  };
  const bool bad = std::ranges::any_of((*report)->rails, is_bad);
  return old || bad ? kFailed : kDone;
}

}  // namespace

void AddLeavesCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<LeavesOptions>();
  CLI::App* command = app->add_subcommand(
      "leaves", "which switch port each rail hangs on, and whether that is the right switch");
  options->output.AddTo(command);
  command->add_flag("--strict", options->strict, "a rail whose switch is not known counts as wrong");
  command->footer(
      "Exit status 1 when a rail hangs on a wrong switch, or railheadd does not run or has no fabric.json.");
  command->callback([&root, status, options] { *status = ShowLeaves(root, *options); });
}

}  // namespace railhead::railctl
