// railctl topology: the places of the node's NICs and accelerators, and the paths between them.
#include <memory>
#include <string>

#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "deviceplugin/tools/topology_view/node_report.h"

namespace railhead::railctl {
namespace {

int StatusOf(const Error& error) {
  return error.code == ErrorCode::kMalformed || error.code == ErrorCode::kInvalid ? kBadConfig : kFailed;
}

struct TopologyArguments {
  Output output;
  RailFilter rail;
};

int ShowTopology(const Root& root, const TopologyArguments& arguments) {
  auto report = topology_view::ReadNodeReport(root);
  if (!report) return Complain(report.error(), StatusOf(report.error()));
  const auto rails = RailsToFilterBy(root, arguments.rail);
  if (!rails) return Complain(rails.error(), StatusOf(rails.error()));
  std::erase_if(report->shown,
                [&](std::size_t nic) { return !arguments.rail.Wants(report->nics[nic].rail); });
  arguments.output.Print(ViewOf(*report), [&](const auto&) { return ReportText(*report); });
  return kDone;
}

}  // namespace

void AddTopologyCommand(CLI::App* app, const Root& root, int* status) {
  auto arguments = std::make_shared<TopologyArguments>();
  CLI::App* command = app->add_subcommand(
      "topology", "Show the paths between NICs and accelerators; rails, VLANs, VFs free and in use");
  command->alias("topo");
  arguments->rail.AddTo(command);
  arguments->output.AddTo(command);
  arguments->output.AddWatchTo(command);
  help::Set(
      command,
      {.examples = {{"railctl topology", "a matrix of paths, and a table each of accelerators and NICs"},
                    {"railctl topology --rail rail0 -w", "the VFs of one rail, as pods get them"}},
       .columns = "of NICs " + ColumnsOf<topology_view::NicView>() + "; of accelerators " +
                  ColumnsOf<topology_view::AcceleratorView>(),
       .notes = "The \"paths\" of -o json have the shape of /etc/railhead/topology.json.",
       .statuses = {{kBadConfig, "fabric.json or topology.json is invalid"}}});
  command->callback([&root, status, arguments] {
    *status = arguments->output.Watched([&] { return ShowTopology(root, *arguments); });
  });
}

}  // namespace railhead::railctl
