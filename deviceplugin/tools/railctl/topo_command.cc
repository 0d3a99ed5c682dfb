// railctl topo: where the node's NICs and accelerators are, and how near to each other.
#include <cstdio>
#include <memory>
#include <string>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/topology_view/node_report.h"
#include "deviceplugin/tools/topology_view/picture.h"
#include "netns/base/files.h"

namespace railhead::railctl {
namespace {

struct TopoOptions {
  bool json = false;
  std::string svg;
};

int StatusOf(const Error& error) {
  return error.code == ErrorCode::kMalformed || error.code == ErrorCode::kInvalid ? kBadConfig : kFailed;
}

// "-" is standard output.
Result<void> WritePicture(const NodeReport& report, const std::string& path) {
  const std::string picture = DrawNode(report);
  if (path != "-")
    return WithContext(WriteAtomic(path, picture, Sync::kVolatile, 0644), "writing the picture");
  (void)std::fputs(picture.c_str(), stdout);
  return {};
}

int ShowTopology(const Root& root, const TopoOptions& options) {
  const auto report = ReadNodeReport(root);
  if (!report) return Complain(report.error(), StatusOf(report.error()));
  if (!options.svg.empty()) {
    if (auto written = WritePicture(*report, options.svg); !written)
      return Complain(written.error(), kFailed);
  }
  // A picture in a file leaves room for the matrix; on standard output it is alone.
  if (options.svg == "-") return kDone;
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
  command->add_option("--svg", options->svg, "write a picture of the node to FILE (-: standard output)")
      ->type_name("FILE");
  command->callback([&root, status, options] { *status = ShowTopology(root, *options); });
}

}  // namespace railhead::railctl
