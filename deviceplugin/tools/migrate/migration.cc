#include "deviceplugin/tools/migrate/migration.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/migrate/add_policy.h"
#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "deviceplugin/tools/migrate/move_to_rails.h"
#include "deviceplugin/tools/migrate/network.h"
#include "deviceplugin/tools/migrate/report_held.h"
#include "deviceplugin/tools/migrate/report_resources.h"
#include "deviceplugin/tools/migrate/resources.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::migrate {
namespace {

constexpr const char* kFabricFile = "fabric.json";
constexpr const char* kReportFile = "report.md";
constexpr const char* kResourceAt = "/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName";

// The device plugin's configuration. If a ConfigMap has several, the node's. nullptr: the documents have
// none.
Result<const DeviceConfig*> ChooseConfig(const Documents& documents, const Options& options,
                                         MigrationReport* report) {
  std::vector<const DeviceConfig*> all;
  for (const DeviceConfig& config : documents.device_configs) {
    const bool same = std::ranges::any_of(all, [&](const auto* one) { return one->text == config.text; });
    if (same) {
      report->untouched.push_back(config.source + ": has the same content as another one");
    } else {
      all.push_back(&config);
    }
  }
  if (all.size() > 1 && !options.node.empty()) {
    const auto others = std::stable_partition(
        all.begin(), all.end(), [&](const DeviceConfig* config) { return config->entry == options.node; });
    if (others != all.begin()) {
      for (auto it = others; it != all.end(); ++it)
        report->untouched.push_back((*it)->source + ": is not that of node " + options.node);
      all.erase(others, all.end());
    }
  }
  if (all.empty()) return nullptr;
  if (all.size() == 1) return all.front();
  std::vector<std::string> sources;
  sources.reserve(all.size());
  for (const DeviceConfig* config : all) sources.push_back(config->source);
  return Fail(ErrorCode::kConflict,
              "several configurations of the device plugin differ: " + Join(sources, ", "),
              "pass one of them, or the node that it belongs to with --node");
}

Result<void> RefuseDuplicates(const std::vector<NetworkDefinition>& networks) {
  std::map<std::pair<std::string, std::string>, const NetworkDefinition*> seen;
  for (const NetworkDefinition& network : networks) {
    const auto [first, made] = seen.try_emplace({network.space, network.name}, &network);
    if (!made) {
      return Fail(ErrorCode::kConflict,
                  network.source + ": is there twice, as " + first->second->source + ", too",
                  "pass each network once");
    }
  }
  return {};
}

std::string FileOf(const Network& network) {
  // Names in Kubernetes never have a '_'.
  return "nad_" + (network.space.empty() ? "" : network.space + "_") + network.name + ".json";
}

void MarkUnknownResources(const OrderedJson& fabric, std::vector<Network>* networks) {
  std::set<std::string> known;
  if (fabric.is_object()) {
    for (const OrderedJson& pool : fabric["pools"]) known.insert(pool["resource"].get<std::string>());
  }
  for (Network& network : *networks) {
    if (network.resource.empty() || known.contains(network.resource)) continue;
    network.keys.Set(
        kResourceAt, KeyOutcome::kNeedsDecision,
        "kept, but fabric.json has no pool with this name: also pass the device plugin's configuration that "
        "has the resource, or add a pool");
  }
}

DocumentReport ReportOf(const Network& network) {
  DocumentReport report;
  report.source = network.source;
  if (network.usable) report.file = FileOf(network);
  report.remarks = network.remarks;
  report.keys = network.keys.All();
  return report;
}

class Migrator {
 public:
  Migrator(const Documents& documents, const Options& options) : documents_(documents), options_(options) {}

  Result<Outcome> Run() {
    outcome_.report.untouched = documents_.untouched;
    RH_TRY(AddResources());
    RH_TRY(AddNetworks());
    for (Network& network : networks_) {
      const bool of_every_node = network.ipam_type == "host-local" && network.usable &&
                                 network.entry.contains("ipam") && network.entry["ipam"].size() > 1;
      if (of_every_node) {
        network.remarks.emplace_back(
            "Every node allocates the same addresses, as with host-local: give each node a range of its own "
            "in fabric.json if the network connects several nodes");
      }
    }
    RH_TRY(AddFiles());
    for (const HeldAddresses& held : documents_.held)
      outcome_.report.documents.push_back(ReportHeld(held, networks_, &imports_));
    AddSteps();
    outcome_.files.push_back({kReportFile, ReportAsMarkdown(outcome_.report)});
    return std::move(outcome_);
  }

 private:
  Result<void> AddResources() {
    const DeviceConfig* config = RH_TRY(ChooseConfig(documents_, options_, &outcome_.report));
    if (config == nullptr) return {};
    const auto migration = RH_TRY(MigrateResources(config->text, config->source, options_.resource_prefix));
    const auto document = RH_TRY(JsonDocument::Parse(config->text, config->source));
    outcome_.report.documents.push_back(ReportResources(config->source, document.json(), migration));
    if (!migration.fabric.empty()) fabric_ = OrderedJson::parse(migration.fabric, nullptr, false);
    return {};
  }

  Result<void> AddNetworks() {
    RH_TRY(RefuseDuplicates(documents_.networks));
    for (const NetworkDefinition& definition : documents_.networks) {
      if (IsOfSuite(definition)) {
        networks_.push_back(RH_TRY(TranslateNetwork(definition, options_)));
      } else {
        outcome_.report.untouched.push_back(definition.source + ": has no plugin of the SR-IOV suite");
      }
    }
    MarkUnknownResources(fabric_, &networks_);
    if (!fabric_.is_object()) return {};
    MoveToRails(options_, &fabric_, &networks_);
    return AddPolicy(&fabric_, &networks_);
  }

  Result<void> AddFiles() {
    if (fabric_.is_object()) {
      outcome_.files.push_back({kFabricFile, fabric_.dump(2) + "\n"});
      RH_TRY(ParseFabric(outcome_.files.back().content, "the resulting fabric.json"));
    }
    for (const Network& network : networks_) {
      outcome_.report.documents.push_back(ReportOf(network));
      if (!network.usable) continue;
      RH_TRY(CheckNetwork(network));
      outcome_.files.push_back({FileOf(network), NetworkAsText(network)});
    }
    return {};
  }

  void AddSteps() {
    auto& steps = outcome_.report.steps;
    if (outcome_.files.empty()) return;
    if (outcome_.report.NeedsDecision())
      steps.emplace_back("Decide the items under \"To decide\", and change the files accordingly");
    if (fabric_.is_object()) {
      steps.emplace_back("On a node of each kind: `railctl config check fabric.json`");
      steps.emplace_back(
          "On each node, drained, since sriov-cni has to delete what it attached: `railctl install cni`, and "
          "`railctl install config --from DIR` with the directory "
          "of these files (the DaemonSet does both)");
    }
    for (const std::string& import : imports_) steps.push_back(import);
    for (const Network& network : networks_) {
      if (!network.usable || network.ipam_type != "whereabouts") continue;
      steps.push_back(
          "On each node, with `kubectl get ippools.whereabouts.cni.cncf.io -A -o json` in pools.json: "
          "`railctl "
          "ipam import whereabouts --network " +
          network.network + " pools.json`");
    }
    for (const Network& network : networks_) {
      if (network.usable) steps.push_back("`kubectl apply -f " + FileOf(network) + "`");
    }
  }

  const Documents& documents_;
  const Options& options_;
  Outcome outcome_;
  OrderedJson fabric_;
  std::vector<Network> networks_;
  std::vector<std::string> imports_;
};

}  // namespace

Result<Outcome> Migrate(const Documents& documents, const Options& options) {
  return Migrator(documents, options).Run();
}

}  // namespace railhead::migrate
