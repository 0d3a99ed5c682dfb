// railctl topo: where the node's NICs and accelerators are, and how near to each other.
#include <cstdio>
#include <memory>
#include <string>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/topology_view/node_report.h"

namespace railhead::railctl {
namespace {

struct TopoOptions {
  bool json = false;
};

int StatusOf(const Error& error) {
  return error.code == ErrorCode::kMalformed || error.code == ErrorCode::kInvalid ? kBadConfig : kFailed;
}

int ShowTopology(const Root& root, const TopoOptions& options) {
  const auto report = topology_view::ReadNodeReport(root);
  if (!report) return Complain(report.error(), StatusOf(report.error()));
  const std::string text = options.json ? ReportJson(*report) : ReportText(*report);
  (void)std::fputs(text.c_str(), stdout);
  return kDone;
}

}  // namespace

void AddTopoCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<TopoOptions>();
  CLI::App* command = app->add_subcommand(
      "topo", "how near NICs and accelerators are to each other; rails, VLANs, VFs free and in use");
  command->add_flag("--json", options->json,
                    "JSON; its \"paths\" have the shape of /etc/railhead/topology.json");
  command->callback([&root, status, options] { *status = ShowTopology(root, *options); });
}

}  // namespace railhead::railctl
