// railctl node-facts: what schedulers may want to know of this node, as labels.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/lldp/node_labels.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"

namespace railhead::railctl {
namespace {

int StatusOfFacts(const Error& error) {
  return error.code == ErrorCode::kMalformed || error.code == ErrorCode::kInvalid ? kBadConfig : kFailed;
}

int ShowFacts(const Root& root, bool as_json) {
  const auto labels = ReadNodeLabels(root);
  if (!labels) return Complain(labels.error(), StatusOfFacts(labels.error()));
  if (as_json) {
    PrintJson(nlohmann::json(*labels));
    return kDone;
  }
  for (const auto& [name, value] : *labels) (void)std::printf("%s=%s\n", name.c_str(), value.c_str());
  return kDone;
}

}  // namespace

void AddNodeFactsCommand(CLI::App* app, const Root& root, int* status) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app->add_subcommand(
      "node-facts", "this node's rails, their leaves, VFs and GPUs as labels, as kubectl label takes them");
  command->add_flag("--json", *json, "as JSON");
  command->footer("Exit status: 0 done; 1 it could not be read; 3 the fabric is wrong.");
  command->callback([&root, status, json] { *status = ShowFacts(root, *json); });
}

}  // namespace railhead::railctl
