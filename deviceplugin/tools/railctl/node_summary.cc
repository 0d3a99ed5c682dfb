#include "deviceplugin/tools/railctl/node_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cni/protocol/cni_args.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "deviceplugin/services/fabric_follow/follower.h"
#include "deviceplugin/tools/railctl/print.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "netns/json/record_table.h"

namespace railhead::railctl {
namespace {

constexpr std::size_t kMostDetails = 3;
constexpr std::size_t kSeverityWidth = 10;
// A runtime gives an ADD up after two to four minutes.
constexpr std::chrono::minutes kLongestAdd{5};
// An address pool of which so much is taken is nearly exhausted.
constexpr double kNearlyFull = 0.9;
constexpr const char* kSeeDaemon =
    "systemctl status railheadd, or kubectl -n railhead get pods -o wide -l "
    "app.kubernetes.io/name=railheadd";

// What railheadd answers to /readyz.
struct ReadyAnswer {
  struct Missing {
    std::string resource;
    std::string because;

    static void List(auto& f) {
      f("resource", &Missing::resource);
      f("because", &Missing::because);
    }
  };
  std::string status;
  std::size_t registered = 0;
  std::size_t standby = 0;
  std::vector<Missing> missing;
  std::vector<std::string> warnings;

  static void List(auto& f) {
    f("status", &ReadyAnswer::status, kRequiredField);
    f("registered", &ReadyAnswer::registered);
    f("standby", &ReadyAnswer::standby);
    f("missing", &ReadyAnswer::missing);
    f("warnings", &ReadyAnswer::warnings);
  }
};

std::string AttachmentText(const JournalEntry& entry) {
  const std::string pod = PodName(entry.cni_args);
  return (pod.empty() ? "" : "pod " + pod + ", ") + "container " + entry.key.container_id.substr(0, 12);
}

std::string CountText(std::size_t count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

void AddReadiness(const ReadyAnswer& ready, SummaryFinding* finding) {
  for (const ReadyAnswer::Missing& missing : ready.missing) {
    finding->Add(Severity::kBroken,
                 (missing.resource.empty() ? "railheadd" : missing.resource) +
                     " is not registered with kubelet: " + missing.because,
                 kSeeDaemon);
  }
  for (const std::string& warning : ready.warnings) finding->Add(Severity::kDegraded, warning, kSeeDaemon);
  if (finding->details.empty())
    finding->Add(Severity::kFine, CountText(ready.registered + ready.standby, "resource") + " registered");
}

// What of a changed fabric is not in force.
void AddFollowed(const Result<std::optional<fabric_follow::FollowState>>& followed, SummaryFinding* finding) {
  if (!followed) return finding->Add(Severity::kUnknown, followed.error().message, kSeeDaemon);
  if (!*followed) return;
  for (const std::string& refused : (*followed)->refused)
    finding->Add(Severity::kBroken, "the fabric is refused: " + refused, "correct it, and apply it again");
  std::vector<std::string> drains;
  for (const std::string& rail : RailsOf((*followed)->pending)) drains.push_back("railctl drain " + rail);
  for (const fabric_follow::PendingChange& change : (*followed)->pending)
    finding->Add(Severity::kDegraded, "a change waits: " + TextOf(change), Join(drains, "; "));
}

// "degraded  drained: rail1 is drained", a line for each of the first details, and what is next.
std::string LinesOf(const SummaryFinding& finding) {
  std::vector<std::string> lines(
      finding.details.begin(),
      finding.details.begin() + static_cast<std::ptrdiff_t>(std::min(finding.details.size(), kMostDetails)));
  if (lines.size() < finding.details.size())
    lines.push_back(std::to_string(finding.details.size() - lines.size()) + " more");
  std::string text;
  std::string before(WordOf(finding.severity));
  before.resize(kSeverityWidth, ' ');
  for (const std::string& line : lines) {
    text += before + finding.check + ": " + OneLine(line) + "\n";
    before.assign(kSeverityWidth, ' ');
  }
  if (!finding.next.empty()) text += before + "  next: " + OneLine(finding.next) + "\n";
  return text;
}

}  // namespace

void SummaryFinding::Add(Severity of_detail, std::string detail, const std::string& what_next) {
  // A finding with a fault lists only faults.
  if (of_detail == Severity::kFine && severity != Severity::kFine) return;
  if (of_detail <= severity) {
    details.push_back(std::move(detail));
    return;
  }
  if (severity == Severity::kFine) details.clear();
  severity = of_detail;
  next = what_next;
  details.insert(details.begin(), std::move(detail));
}

NodeVerdict NodeSummary::Verdict() const {
  Severity worst = Severity::kFine;
  for (const SummaryFinding& finding : findings) worst = std::max(worst, finding.severity);
  if (worst == Severity::kFine) return NodeVerdict::kOk;
  return worst == Severity::kBroken ? NodeVerdict::kBroken : NodeVerdict::kDegraded;
}

std::string TextOf(const NodeSummary& summary) {
  constexpr std::array kWords = {"OK", "DEGRADED", "BROKEN"};
  std::string text = kWords.at(static_cast<std::size_t>(summary.Verdict()));
  text += ": node " + summary.node + ", " + CountText(summary.rails, "rail") + ", " +
          CountText(summary.offered, "device") + ": " + std::to_string(summary.free) + " free, " +
          std::to_string(summary.in_use) + " in use by " + CountText(summary.pods, "pod") + "\n";
  std::vector<std::string> fine;
  for (const SummaryFinding& finding : summary.findings) {
    if (finding.severity == Severity::kFine) {
      fine.push_back(finding.check);
      continue;
    }
    text += LinesOf(finding);
  }
  if (!fine.empty()) text += "fine: " + Join(fine, ", ") + "\n";
  return text;
}

SummaryFinding CheckFabricFile(const Root& root) {
  SummaryFinding finding{"fabric", Severity::kFine, {}, ""};
  const auto text = ReadFile(root.Path(kFabricPath));
  if (!text) {
    finding.Add(Severity::kUnknown, text.error().message, "railctl config check " + std::string(kFabricPath));
  } else if (!*text) {
    if (Exists(root.Path(kSriovdpConfigPath))) return finding;
    finding.Add(Severity::kBroken, std::string("no such file: ") + kFabricPath,
                "railctl fabric suggest proposes one; railctl install config --from DIRECTORY "
                "(docs/reference/fabric.md)");
  } else {
    for (const Error& error : fabric_follow::ErrorsInFabric(**text, kFabricPath))
      finding.Add(Severity::kBroken, error.message, "railctl config check " + std::string(kFabricPath));
  }
  AddFollowed(fabric_follow::kFollowFile.Read(root), &finding);
  return finding;
}

SummaryFinding CheckDaemon(const Result<http::HttpAnswer>& answer,
                           const Result<std::optional<lldp::LldpReport>>& lldp,
                           std::chrono::system_clock::time_point now) {
  SummaryFinding finding{"railheadd", Severity::kFine, {}, ""};
  if (!answer) {
    const bool runs = lldp && *lldp && !lldp::kLldpFile.IsOld(**lldp, now);
    if (runs) {
      finding.Add(Severity::kUnknown, "it runs, but cannot be asked: " + answer.error().message,
                  "railctl status --http-address IP:PORT, as railheadd has it");
    } else {
      finding.Add(Severity::kBroken, "it does not answer: " + answer.error().message, kSeeDaemon);
    }
    return finding;
  }
  const auto ready = ParseRecord<ReadyAnswer>(answer->body, "/readyz");
  if (ready) {
    AddReadiness(*ready, &finding);
  } else {
    finding.Add(Severity::kUnknown,
                "its answer " + std::to_string(answer->status) + " cannot be read: " + ready.error().message,
                kSeeDaemon);
  }
  return finding;
}

SummaryFinding CheckJournal(const Result<JournalScan>& scan, std::chrono::system_clock::time_point now) {
  SummaryFinding finding{"journal", Severity::kFine, {}, ""};
  if (!scan) {
    finding.Add(Severity::kUnknown, scan.error().message, "railctl journal list");
    return finding;
  }
  for (const UnreadableEntry& entry : scan->unreadable) {
    finding.Add(Severity::kDegraded, entry.path + " cannot be read, and holds its devices",
                "railctl journal restore " + entry.path);
  }
  for (const JournalEntry& entry : scan->entries) {
    const auto since = WallTime(entry.since);
    if (entry.phase == Phase::kDone || now - since < kLongestAdd) continue;
    const std::string pod = PodName(entry.cni_args);
    finding.Add(Severity::kDegraded,
                AttachmentText(entry) + ": its ADD began " + AgeOf(since) + " ago and waits for a restore",
                "railctl why " + (pod.empty() ? entry.key.container_id.substr(0, 12) : pod));
  }
  for (const JournalEntry& entry : scan->earlier)
    finding.Add(Severity::kDegraded, AttachmentText(entry) + ": of an earlier boot, waits for a restore",
                "railheadd --reconcile-once");
  for (const std::string& device : scan->orphaned)
    finding.Add(Severity::kDegraded, device + " is held by no attachment", "railheadd --reconcile-once");
  if (finding.details.empty()) finding.Add(Severity::kFine, CountText(scan->entries.size(), "attachment"));
  return finding;
}

SummaryFinding CheckAddresses(const Result<std::optional<AddressReport>>& report) {
  SummaryFinding finding{"addresses", Severity::kFine, {}, ""};
  if (!report) {
    finding.Add(Severity::kBroken, report.error().message, "railctl ipam check");
    return finding;
  }
  if (!*report) return finding;
  for (const std::string& damage : (*report)->damage)
    finding.Add(Severity::kBroken, "the store is damaged: " + damage, "railctl ipam check");
  for (const KnownAddress& known : (*report)->Leaked())
    finding.Add(Severity::kDegraded, known.record.address.ToString() + " is leaked: " + known.leak,
                "railctl ipam check");
  return finding;
}

SummaryFinding CheckRanges(const Fabric& fabric, const std::string& node, std::optional<int> index,
                           const AddressReport& report) {
  SummaryFinding finding{"ranges", Severity::kFine, {}, ""};
  // A VF has its address by its index: nothing runs out.
  if (fabric.address_policy == AddressPolicy::kDeterministic) return finding;
  for (const Rail& rail : fabric.rails) {
    const auto ranges = rail.RangesOf(node, index);
    if (!rail.subnet || ranges.empty()) continue;
    const auto use = AddressesOfRail(rail, ranges, report);
    if (!use) {
      finding.Add(Severity::kBroken, rail.name + ": " + use.error().message,
                  "the rail's exclude in fabric.json, or another index of the node in nodes");
      continue;
    }
    // Its pod has it.
    if (use->size == 1) continue;
    const std::uint64_t taken = use->size - use->Free();
    if (static_cast<double>(taken) < kNearlyFull * static_cast<double>(use->size)) continue;
    const bool none = use->Free() == 0 && use->cooling_down == 0;
    finding.Add(none ? Severity::kBroken : Severity::kDegraded,
                rail.name + ": " + std::to_string(taken) + " of " + std::to_string(use->size) +
                    " addresses are taken, " + std::to_string(use->cooling_down) + " of them cool down",
                "railctl ipam list --pool " + use->pool);
  }
  return finding;
}

// A pod has the routes of its ADD. Those that follow from the fabric's subnets grow with the fabric.
SummaryFinding CheckRoutes(const Fabric& fabric, const std::vector<JournalEntry>& entries) {
  SummaryFinding finding{"routes", Severity::kFine, {}, ""};
  for (const Rail& rail : fabric.rails) {
    if (rail.routes_from == RouteSource::kWritten) continue;
    std::map<IpPrefix, std::set<std::string>> missing;
    for (const JournalEntry& entry : entries) {
      for (const AttachedDevice& device : entry.devices) {
        if (device.rail != rail.name || device.addressing.addresses.empty()) continue;
        for (const IpPrefix& destination : rail.routes) {
          const bool has = std::ranges::any_of(device.addressing.routes, [&](const Route& route) {
            return route.destination.Contains(destination);
          });
          if (!has) missing[destination].insert(AttachmentText(entry));
        }
      }
    }
    for (const auto& [destination, pods] : missing) {
      finding.Add(Severity::kDegraded,
                  rail.name + ": no route to " + destination.ToString() + " in " +
                      CountText(pods.size(), "pod") + " that started before the fabric had it: " +
                      *pods.begin() + (pods.size() > 1 ? " and others" : ""),
                  "restart them, if they talk to nodes there");
    }
  }
  return finding;
}

}  // namespace railhead::railctl
