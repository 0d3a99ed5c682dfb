// railctl preflight: is this node fit to join?
#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/services/lldp/node_labels.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "deviceplugin/tools/doctor/report.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "deviceplugin/tools/preflight/preflight_checks.h"
#include "deviceplugin/tools/preflight/report.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/print.h"
#include "deviceplugin/tools/rdma_test/interrupts.h"
#include "deviceplugin/tools/rdma_test/test_runner.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

struct PreflightOptions {
  std::vector<std::string> skip;
  std::string fabric = kFabricPath;
  std::string peer;
  std::string device;
  std::string key_file;
  double min_gbit = 0;
  Output output;
};

struct NodeCheck {
  std::string name;
  std::function<preflight::Finding()> run;
};

std::optional<bool> CarrierOf(const Root& root, const std::string& netdev) {
  const auto text = ReadAttribute(root.Path("/sys/class/net/" + netdev + "/carrier"));
  // The kernel's answer for "administratively down".
  if (!text) return text.error().sys_errno == EINVAL ? std::optional(false) : std::nullopt;
  if (!*text) return std::nullopt;
  return **text == "1";
}

}  // namespace

Result<std::vector<preflight::RailPf>> ReadRailPfs(const Root& root, const std::string& path) {
  const auto fabric = RH_TRY(ReadFabric(root, path));
  if (!fabric) return Fail(NoSuchFabric(root.Path(path)));
  const auto inventory = RH_TRY(Discover(root, inventory::HostNetwork{}));
  const auto pfs = resources::PfsOfRails(*fabric, *inventory);
  std::vector<preflight::RailPf> ports;
  for (const Rail& rail : fabric->rails) {
    preflight::RailPf port;
    port.rail = rail.name;
    const auto pf = pfs.find(rail.name);
    const inventory::NicFunction* function = pf == pfs.end() ? nullptr : inventory->Find(pf->second);
    if (function != nullptr) {
      port.pf = function->pf_name.empty() ? function->id : function->pf_name;
      port.carrier = CarrierOf(root, function->pf_name);
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

namespace {

Result<std::vector<rdma_test::TestRecord>> TestAgainst(const Root& root, const PreflightOptions& options) {
  const auto ends = RH_TRY(FindTestEnds(root, {"host", options.peer}));
  rdma_test::PlanOptions plan;
  // A pod of this node has its own.
  if (!ends[1].remote.empty()) plan.device = options.device;
  rdma_test::TestParameters parameters;
  parameters.seconds = 1;
  parameters.keys = RH_TRY(rdma_test::ReadKeys(options.key_file));
  const auto tests = RH_TRY(rdma_test::PlanTests(ends, plan));
  const auto interrupts = RH_TRY(rdma_test::Interrupts::Catch());
  std::vector<rdma_test::TestRecord> records;
  for (const auto& test : tests) {
    auto outcome = rdma_test::RunTest(ends[0], ends[1], test, parameters, interrupts);
    if (!outcome && outcome.error().message == rdma_test::kInterrupted)
      return Fail(std::move(outcome.error()));
    records.push_back({"host", options.peer, test.from_rail.rail, 1, std::move(outcome)});
  }
  return records;
}

// In the order of the report. Add new checks here.
std::vector<NodeCheck> ChecksOf(const Root& root, const PreflightOptions& options,
                                const std::vector<const doctor::Check*>& of_doctor) {
  std::vector<NodeCheck> checks = {
      {"doctor",
       [&root, &of_doctor] {
         const auto facts = doctor::ReadFacts(root, doctor::QuestionsFor(root));
         return preflight::CheckDoctor(doctor::RunChecks(facts, of_doctor));
       }},
      {"health", [&root] { return preflight::CheckHealth(health::kHealthFile.Read(root)); }},
      {"drained", [&root] { return preflight::CheckDrains(health::ReadDrains(root)); }},
      {"rails", [&root, &options] { return preflight::CheckRails(ReadRailPfs(root, options.fabric)); }},
      {"cabling",
       [&root] {
         return preflight::CheckCabling(lldp::kLldpFile.Read(root), std::chrono::system_clock::now());
       }},
      {"reachability",
       [&root] {
         return preflight::CheckReachability(reachability::ReadReachabilityReport(root),
                                             std::chrono::system_clock::now());
       }},
  };
  if (!options.peer.empty())
    checks.push_back({"rdma-test", [&root, &options] {
                        return preflight::CheckRdma(TestAgainst(root, options), options.min_gbit);
                      }});
  return checks;
}

int StatusOf(preflight::Fitness fitness) {
  if (fitness == preflight::Fitness::kFit) return kDone;
  return fitness == preflight::Fitness::kUnfit ? kFailed : kUndetermined;
}

// Removes our checks from `skip` and returns them; the others are the doctor's.
std::vector<std::string> RemoveOwn(std::vector<std::string>* skip) {
  std::vector<std::string> own;
  for (const char* name : {"doctor", "health", "drained", "rails", "cabling", "reachability", "rdma-test"}) {
    if (std::erase(*skip, name) != 0) own.emplace_back(name);
  }
  return own;
}

int RunPreflight(const Root& root, const PreflightOptions& options) {
  if (options.peer.empty() && (!options.device.empty() || options.min_gbit > 0)) {
    const std::string option = options.device.empty() ? "--min-gbit" : "--device";
    return Complain({ErrorCode::kInvalid, option + " needs --peer", "", 0}, kUsage);
  }
  std::vector<std::string> of_doctor = options.skip;
  const auto own = RemoveOwn(&of_doctor);
  const auto selected = doctor::SelectChecks({}, of_doctor);
  if (!selected) return Complain(selected.error(), kUsage);
  preflight::Report report;
  report.node = NodeName(root).value_or("?");
  for (const NodeCheck& check : ChecksOf(root, options, *selected)) {
    const bool skipped = Contains(own, check.name);
    if (!skipped) SayProgress("checking " + check.name);
    report.findings.push_back(skipped ? preflight::Finding{check.name, preflight::Fitness::kSkipped, {}, ""}
                                      : check.run());
  }
  options.output.Print(report, preflight::ReportAsText);
  return StatusOf(report.Verdict());
}

}  // namespace

void AddPreflightCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<PreflightOptions>();
  CLI::App* command =
      app->add_subcommand("preflight", "Check whether this node is fit to join: all checks at once");
  command
      ->add_option(
          "--skip", options->skip,
          "skip these: doctor, health, drained, rails, cabling, reachability, rdma-test, or checks of the "
          "doctor: pci.acs")
      ->type_name("ID");
  command->add_option(
      "--peer", options->peer,
      "also test RDMA with this peer: ADDRESS:PORT of railctl rdma-test --listen on another node, or "
      "a pod of this node");
  command->add_option("--device", options->device, "with --peer on another node: RDMA device of this one");
  command->add_option("--key-file", options->key_file,
                      "with --peer on another node: keys that both nodes have");
  command
      ->add_option("--min-gbit", options->min_gbit,
                   "with --peer: the node is unfit if a rail writes less (Gbit/s; 0: any speed is fit)")
      ->check(CLI::Range(0.0, 10000.0))
      ->capture_default_str();
  command->add_option("--fabric", options->fabric, "fabric.json, for rails")->capture_default_str();
  options->output.AddTo(command);
  help::Set(command, {.more = "It changes nothing.",
                      .examples = {{"railctl preflight", "before the node joins"},
                                   {"railctl preflight --peer 10.0.0.2:18515 --device mlx5_0 --min-gbit 180",
                                    "also RDMA with a neighbour"}},
                      .notes = "Run it as root on the host.",
                      .statuses = {{kDone, "fit"},
                                   {kFailed, "unfit"},
                                   {kUndetermined, "something could not be checked, and nothing is unfit"}}});
  command->callback([options, &root, status] { *status = RunPreflight(root, *options); });
}

// railctl labels: this node's labels for schedulers.

namespace {

int StatusOfLabelsError(const Error& error) {
  return error.code == ErrorCode::kMalformed || error.code == ErrorCode::kInvalid ? kBadConfig : kFailed;
}

int ShowLabels(const Root& root, const Output& output) {
  const auto labels = lldp::ReadNodeLabels(root);
  if (!labels) return Complain(labels.error(), StatusOfLabelsError(labels.error()));
  output.Print(*labels, [](const auto& pairs) {
    std::string text;
    for (const auto& [name, value] : pairs) text.append(name).append("=").append(value).append("\n");
    return text;
  });
  return kDone;
}

}  // namespace

void AddLabelsCommand(CLI::App* app, const Root& root, int* status) {
  auto output = std::make_shared<Output>();
  CLI::App* command = app->add_subcommand(
      "labels", "Print this node's rails, leaf switches, VFs and GPUs as Kubernetes labels");
  output->AddTo(command);
  help::Set(
      command,
      {.examples = {{"railctl labels", "a line NAME=VALUE for each label"},
                    {"kubectl label --overwrite node gpu-001 $(railctl labels)", "set them, on the node"}},
       .statuses = {{kFailed, "the node could not be read"}, {kBadConfig, "fabric.json is invalid"}}});
  command->callback([&root, status, output] { *status = ShowLabels(root, *output); });
}

}  // namespace railhead::railctl
