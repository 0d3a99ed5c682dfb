// railctl config check and railctl config schema; config_diff_command.cc has railctl config diff.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/fabric/fabric_base.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "deviceplugin/node/snapshot/detect_config.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "deviceplugin/services/node_index/node_addresses.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_nodes.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/config_warnings.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "netns/json/record_table.h"

namespace railhead::railctl {
namespace {

// A configuration of which nothing is wrong.
struct Checked {
  NodeSnapshot node;
  std::vector<node_index::RailCapacity> capacities;
  std::optional<GroupedNode> named;  // that --node names
  std::vector<GroupSize> groups;     // of the nodes that --all-nodes names

  static void List(auto& f) {
    f.Output("ok", [](const Checked&) { return true; });
    f("plan", &Checked::node);
    f("capacities", &Checked::capacities);
    f("node", &Checked::named);
    f("groups", &Checked::groups);
  }
};

std::string TextOf(const node_index::RailCapacity& rail) {
  std::string text = "rail " + rail.rail + ": " + std::to_string(rail.nodes) + " nodes with ";
  if (rail.least != rail.most) text += std::to_string(rail.least) + " to ";
  text += std::to_string(rail.most) + " addresses each";
  if (rail.nodes != rail.blocks) text += "; blocks without one: " + std::to_string(rail.blocks - rail.nodes);
  return text + "\n";
}

std::string TextOf(const GroupedNode& node) {
  std::string text = "node " + node.node + ": ";
  text += node.groups.empty() ? "no group" : "groups " + Join(node.groups, ", ");
  if (node.index) text += "; index " + std::to_string(*node.index);
  return text + "\n" + (node.changes.empty() ? "" : Aligned(TableOf(node.changes, false), "  "));
}

std::string TextOf(const GroupSize& size) {
  return (size.group.empty() ? "no group: " : "group " + size.group + ": ") + std::to_string(size.nodes) +
         (size.nodes == 1 ? " node\n" : " nodes\n");
}

// "error" is the first of "errors", for scripts that know of no more.
struct Refused {
  std::vector<Error> errors;

  static void List(auto& f) {
    f.Output("ok", [](const Refused&) { return false; });
    f.Output("error", [](const Refused& refused) { return refused.errors.front(); });
    f("errors", &Refused::errors);
  }
};

struct ConfigArguments {
  std::string file;
  std::string prefix = resources::kSriovdpPrefix;
  std::string node;       // of a fabric with groups
  std::string all_nodes;  // file with their names
  Output output;
};

// The nodes that the arguments name; without any those that the fabric lists.
Result<std::vector<std::string>> NodesToCheck(const Root& root, const ConfigArguments& arguments,
                                              const FabricBase& base) {
  std::vector<std::string> nodes;
  if (!arguments.all_nodes.empty()) nodes = RH_TRY(ReadNodeNames(root, arguments.all_nodes));
  if (!arguments.node.empty()) nodes.push_back(arguments.node);
  if (!nodes.empty()) return nodes;
  for (const auto& [node, index] : base.fabric().nodes) nodes.push_back(node);
  return nodes;
}

// The errors of the file itself, which every node finds.
std::vector<Error> ErrorsIn(const Root& root, const ConfigSource& source) {
  std::vector<Error> errors;
  const std::string path = source.fabric ? *source.fabric : *source.sriovdp;
  const auto text = ReadFile(root.Path(path));
  if (!text || !*text) return errors;  // changed since DetectConfig(): planning reports it
  if (source.sriovdp) {
    (void)resources::ParseSriovdpConfig(**text, path, source.resource_prefix, &errors);
    return errors;
  }
  return fabric_follow::ErrorsInFabric(**text, path);
}

// What nodes make of the fabric, and the warnings of it. Empty: nothing is wrong.
std::vector<Error> AddNodes(const Root& root, const ConfigArguments& arguments, const FabricBase& base,
                            Checked* checked) {
  const auto nodes = NodesToCheck(root, arguments, base);
  if (!nodes) return {nodes.error()};
  if (auto errors = ErrorsForNodes(base, *nodes); !errors.empty()) return errors;
  auto warnings = base.fabric().node_groups.empty() ? WarningsOf(base.fabric(), arguments.file)
                                                    : WarningsForNodes(base, arguments.file, *nodes);
  std::ranges::move(warnings, std::back_inserter(checked->node.warnings));
  if (!arguments.node.empty()) checked->named = NodeWithGroups(base, arguments.node);
  if (!arguments.all_nodes.empty()) checked->groups = GroupSizes(base, *nodes);
  return {};
}

void AddFindings(const Root& root, const Fabric& fabric, const std::string& path, Checked* checked) {
  // The file may be for other nodes: what cannot be read here is no finding.
  if (const auto cluster = doctor::ReadCni(root); cluster) {
    for (Error& warning : doctor::RoutesOverCluster(fabric, *cluster)) {
      warning.message.insert(0, path + ": ");
      checked->node.warnings.push_back(std::move(warning));
    }
  }
  for (const Rail& rail : fabric.rails) {
    if (auto capacity = node_index::CapacityOf(rail)) checked->capacities.push_back(*std::move(capacity));
  }
}

std::vector<Error> AddFindingsOf(const Root& root, const ConfigArguments& arguments, Checked* checked) {
  const auto text = ReadFile(root.Path(arguments.file));
  if (!text || !*text) return {};  // changed since it was read
  const auto base = FabricBase::Parse(**text, arguments.file);
  if (!base) return {base.error()};
  if (auto errors = AddNodes(root, arguments, *base, checked); !errors.empty()) return errors;
  const auto own = base->FabricOf(arguments.node.empty() ? NodeName(root).value_or("") : arguments.node);
  if (own) AddFindings(root, *own, arguments.file, checked);
  return {};
}

int CheckConfig(const Root& root, const ConfigArguments& arguments) {
  const auto source = DetectConfig(root, arguments.file, arguments.prefix);
  if (!source) return Refuse({source.error()}, arguments.output, kBadConfig);
  if (const auto errors = ErrorsIn(root, *source); !errors.empty())
    return Refuse(errors, arguments.output, kBadConfig);
  auto node = SnapshotOfThisNode(root, *source);
  if (!node) return Refuse({node.error()}, arguments.output, kBadConfig);
  Checked found{*std::move(node), {}, {}, {}};
  if (source->fabric) {
    const auto errors = AddFindingsOf(root, arguments, &found);
    if (!errors.empty()) return Refuse(errors, arguments.output, kBadConfig);
  }
  arguments.output.Print(found, [](const Checked& checked) {
    for (const Error& warning : checked.node.warnings)
      (void)std::fprintf(stderr, "warning: %s\n", Describe(warning).c_str());
    std::string text = "ok\n" + SnapshotAsText(checked.node);
    for (const node_index::RailCapacity& rail : checked.capacities) text += TextOf(rail);
    for (const GroupSize& size : checked.groups) text += TextOf(size);
    if (checked.named) text += TextOf(*checked.named);
    return text;
  });
  return kDone;
}

}  // namespace

void AddConfigCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* config = app->add_subcommand("config", "Check or describe a configuration");
  config->require_subcommand(1);
  const auto arguments = std::make_shared<ConfigArguments>();
  CLI::App* check = config->add_subcommand(
      "check", "Say what is wrong with a configuration, or which devices its resources get");
  check->add_option("FILE", arguments->file, "fabric.json, or sriov-network-device-plugin's config.json")
      ->required();
  check->add_option("--resource-prefix", arguments->prefix, "Prefix of resources without resourcePrefix")
      ->capture_default_str();
  check->add_option("--node", arguments->node,
                    "Say what a node with this name gets from the groups that have it");
  check->add_option(
      "--all-nodes", arguments->all_nodes,
      "Check the fabrics of all nodes: names, one a line, or what kubectl get nodes -o json prints");
  arguments->output.AddTo(check);
  help::Set(
      check,
      {.examples = {{"railctl config check /etc/railhead/fabric.json", "of this node"},
                    {"railctl config check fabric.json --node gpu-033", "its groups, and what they change"},
                    {"railctl config check new.json -o json", "all errors, for a script"}},
       .statuses = {{kDone, "the file is valid"}, {kBadConfig, "it is missing or invalid"}}});
  check->callback([&root, status, arguments] { *status = CheckConfig(root, *arguments); });
  AddConfigDiffCommand(config, root, status);
  const auto of = std::make_shared<std::string>();
  CLI::App* schema = config->add_subcommand("schema", "Print a JSON schema, for editors and validators");
  schema->add_option("WHAT", *of, "fabric.json, the network configurations of railhead, or topology.json")
      ->required()
      ->check(CLI::IsMember(Schemas()));
  help::Set(schema, {.examples = {{"railctl config schema fabric >fabric.schema.json", "for an editor"},
                                  {"railctl config schema network", "all keys of a network configuration"}}});
  schema->callback([of] { (void)std::printf("%s\n", Schemas().at(*of)().dump(2).c_str()); });
}

int Refuse(const std::vector<Error>& errors, const Output& output, int status) {
  if (!output.is_text()) output.PrintData(ToJson(Refused{errors}));
  for (const Error& error : errors) (void)Complain(error, status);
  return status;
}

}  // namespace railhead::railctl
