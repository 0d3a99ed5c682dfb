// railctl status: a verdict on this node, and its faults, the worst first.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/reconcile/address_facts.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/preflight/preflight_checks.h"
#include "deviceplugin/tools/preflight/report.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/device_list.h"
#include "deviceplugin/tools/railctl/node_summary.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/node.h"

namespace railhead::railctl {
namespace {

using Wall = std::chrono::system_clock;

constexpr const char* kHttpAddress = "127.0.0.1:9917";
constexpr std::chrono::seconds kLongestAnswer{2};
constexpr std::chrono::hours kRecent{1};

struct StatusArguments {
  std::string http_address = kHttpAddress;
  Output output;
};

Result<http::HttpAnswer> AskReady(const std::string& address) {
  if (address.empty()) return Fail(ErrorCode::kInvalid, "--http-address is empty");
  const auto endpoint = RH_TRY(http::ParseHttpEndpoint("http://" + address));
  http::HttpClient client({.endpoint = endpoint, .tls = {}, .timeout = kLongestAnswer});
  return client.Send({.method = "GET", .target = "/readyz", .headers = {}, .body = {}, .repeatable = true});
}

// `command`: what shows more; part of what is to be done next, if the finding does not name it.
SummaryFinding OfPreflight(const preflight::Finding& of, const std::string& command) {
  constexpr std::array kSeverities = {Severity::kFine, Severity::kFine, Severity::kUnknown,
                                      Severity::kDegraded};
  SummaryFinding finding{of.check, kSeverities.at(static_cast<std::size_t>(of.fitness)), of.details, ""};
  if (finding.severity == Severity::kFine) return finding;
  finding.next = of.fix.empty() ? command : of.fix;
  if (finding.next.find("railctl") == std::string::npos) finding.next += "; " + command;
  return finding;
}

// A PF in a pod shows no carrier to the host: its device's health has other sources.
SummaryFinding CheckRailPfs(const Root& root, const NodeRecords& records) {
  auto pfs = ReadRailPfs(root, kFabricPath);
  if (!pfs) return OfPreflight(preflight::CheckRails(pfs), "railctl topology");
  const bool any =
      std::ranges::any_of(*pfs, [](const auto& pf) { return !pf.pf.empty() && pf.carrier.value_or(true); });
  std::erase_if(*pfs, [&](const preflight::RailPf& pf) {
    const auto device = records.pf_of_rail.find(pf.rail);
    return !pf.pf.empty() && !pf.carrier && device != records.pf_of_rail.end() &&
           records.HolderOf(device->second);
  });
  SummaryFinding finding = OfPreflight(preflight::CheckRails(pfs), "railctl topology");
  if (finding.severity == Severity::kDegraded && !any) finding.severity = Severity::kBroken;
  return finding;
}

SummaryFinding CheckDevices(const Root& root, const Result<NodeSnapshot>& node, const DeviceList& list) {
  SummaryFinding finding{"devices", Severity::kFine, {}, ""};
  if (const auto allocations = ReadCheckpoint(root); !allocations)
    finding.Add(Severity::kUnknown, allocations.error().message, "railctl devices");
  if (!node) {
    const std::string& hint = node.error().hint;
    finding.Add(Severity::kBroken, node.error().message,
                hint.empty() ? "railctl config check " + std::string(kFabricPath) : hint);
    return finding;
  }
  const auto offered = list.devices.size() - list.Count(OfferState::kNotOffered);
  const auto bad = list.Count(OfferState::kUnhealthy) + list.Count(OfferState::kDrained) +
                   list.Count(OfferState::kUnreadable);
  if (offered == 0) {
    finding.Add(Severity::kBroken, "no device is offered to kubelet", "railctl devices");
  } else if (bad == offered) {
    finding.Add(Severity::kBroken, "every device is unhealthy or drained", "railctl devices");
  }
  for (const std::string& warning : list.warnings)
    finding.Add(Severity::kDegraded, warning, "railctl devices");
  return finding;
}

SummaryFinding CheckRefusals(const Root& root, Wall::time_point now) {
  SummaryFinding finding{"allocations", Severity::kFine, {}, ""};
  const auto facts = reconcile::ReadAddressFacts(root, 0);
  if (!facts) {
    finding.Add(Severity::kUnknown, facts.error().message, "railctl ipam check");
    return finding;
  }
  for (const ipam::AddressEvent& event : facts->events) {
    if (event.kind == ipam::AddressEventKind::kExhausted && now - WallTime(event.wall_seconds) < kRecent)
      finding.Add(Severity::kDegraded, reconcile::Sentence(event), "railctl ipam events");
  }
  return finding;
}

void Count(const NodeRecords& records, const DeviceList& list, NodeSummary* summary) {
  summary->rails = records.fabric ? records.fabric->rails.size() : 0;
  summary->offered = list.devices.size() - list.Count(OfferState::kNotOffered);
  summary->free = list.Count(OfferState::kFree);
  std::set<std::string> pods;
  for (const OfferedDevice& device : list.devices) {
    if (device.container.empty() && device.pod.empty()) continue;
    ++summary->in_use;
    pods.insert(device.pod.empty() ? device.container : device.pod);
  }
  summary->pods = pods.size();
}

void AddFabricFindings(const Root& root, const NodeRecords& records, NodeSummary* summary) {
  const auto now = Wall::now();
  auto& findings = summary->findings;
  findings.push_back(CheckRailPfs(root, records));
  findings.push_back(OfPreflight(preflight::CheckCabling(lldp::kLldpFile.Read(root), now), "railctl lldp"));
  findings.push_back(OfPreflight(
      preflight::CheckReachability(reachability::ReadReachabilityReport(root), now), "railctl reachability"));
  if (!records.fabric) return;
  findings.push_back(CheckRanges(*records.fabric, summary->node, records.index, records.addresses));
  findings.push_back(CheckRoutes(*records.fabric, records.journal.entries));
}

int RunStatus(const Root& root, const StatusArguments& arguments) {
  const NodeSummary summary = Summarize(root, arguments.http_address);
  arguments.output.Print(summary, [](const NodeSummary& it) { return TextOf(it); });
  return summary.Verdict() == NodeVerdict::kOk ? kDone : kFailed;
}

}  // namespace

NodeSummary Summarize(const Root& root, const std::string& http_address) {
  const auto now = Wall::now();
  NodeSummary summary;
  summary.node = NodeName(root).value_or("?");
  const NodeRecords records = ReadNodeRecords(root);
  const auto node = SnapshotOfThisNode(root);
  const DeviceList list = node ? ListDevices(root, *node, records) : DeviceList{};
  Count(records, list, &summary);
  auto& findings = summary.findings;
  findings.push_back(CheckFabricFile(root));
  findings.push_back(CheckDaemon(AskReady(http_address), lldp::kLldpFile.Read(root), now));
  findings.push_back(CheckDevices(root, node, list));
  findings.push_back(OfPreflight(preflight::CheckHealth(health::kHealthFile.Read(root)), "railctl health"));
  findings.push_back(OfPreflight(preflight::CheckDrains(health::ReadDrains(root)), "railctl drain"));
  // A config.json of sriov-network-device-plugin has no rails.
  if (!node || node->of_fabric) AddFabricFindings(root, records, &summary);
  findings.push_back(CheckJournal(Journal(root).Scan(), now));
  findings.push_back(CheckAddresses(ReportAddresses(root)));
  findings.push_back(CheckRefusals(root, now));
  std::ranges::stable_sort(findings, std::ranges::greater{}, &SummaryFinding::severity);
  return summary;
}

void AddStatusCommand(CLI::App* app, const Root& root, int* status) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command = app->add_subcommand(
      "status", "Say whether this node is fine, and the command to run next for each fault");
  command
      ->add_option("--http-address", arguments->http_address,
                   "where railheadd serves /readyz, IP:PORT; \"\": do not ask it")
      ->capture_default_str();
  arguments->output.AddTo(command);
  arguments->output.AddWatchTo(command);
  help::Set(command,
            {.more = "It changes nothing.",
             .examples = {{"railctl status", "OK, DEGRADED or BROKEN; then the faults, the worst first"},
                          {"railctl status -w", "while the node recovers"}},
             .statuses = {{kDone, "the node is fine"},
                          {kFailed, "it is degraded or broken, or something could not be read"}}});
  command->callback([arguments, &root, status] {
    *status = arguments->output.Watched([&] { return RunStatus(root, *arguments); });
  });
}

}  // namespace railhead::railctl
