// railctl topology: the places of the node's NICs and accelerators, and the paths between them.
#include <memory>
#include <string>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/topology_view/node_report.h"

namespace railhead::railctl {
namespace {

int StatusOf(const Error& error) {
  return error.code == ErrorCode::kMalformed || error.code == ErrorCode::kInvalid ? kBadConfig : kFailed;
}

int ShowTopology(const Root& root, const Output& output) {
  const auto report = topology_view::ReadNodeReport(root);
  if (!report) return Complain(report.error(), StatusOf(report.error()));
  output.Print(ViewOf(*report), [&](const auto&) { return ReportText(*report); });
  return kDone;
}

}  // namespace

void AddTopologyCommand(CLI::App* app, const Root& root, int* status) {
  auto output = std::make_shared<Output>();
  CLI::App* command = app->add_subcommand(
      "topology", "the paths between NICs and accelerators; rails, VLANs, VFs free and in use");
  command->alias("topo");
  output->AddTo(command);
  command->footer("The \"paths\" of -o json have the shape of /etc/railhead/topology.json.");
  command->callback([&root, status, output] { *status = ShowTopology(root, *output); });
}

}  // namespace railhead::railctl
