#include "bench/report.h"

#include <optional>
#include <utility>
#include <vector>

#include "bench/contender.h"
#include "bench/ipam_verdict.h"
#include "bench/node_report.h"
#include "bench/rails.h"
#include "bench/rtnl_report.h"
#include "bench/text.h"

namespace railhead::bench {
namespace {

// "  12.34  (11.90.. 15.02)"
std::string Spread(const Series* series) {
  if (series == nullptr) return Text("%26s", "");
  return Text("%8.2f (%7.2f..%7.2f)", series->Median(), series->Min(), series->Max());
}

// The median of another series as a number of this one's.
std::string Relative(const Series* series, const Series* to) {
  if (series == nullptr || to == nullptr) return Text("%7s", "");
  return Text("%6.2fx", series->Median() / to->Median());
}

std::vector<std::string> NamesIn(const Record& record, const std::string& group) {
  std::vector<std::string> names;
  for (const auto& series : record.all()) {
    bool known = series.group != group;
    for (const auto& name : names) known = known || name == series.who;
    if (!known) names.push_back(series.who);
  }
  return names;
}

std::string StartupTable(const Record& record, const std::string& group, const std::string& title) {
  const auto names = NamesIn(record, group);
  const Series* base = record.Find(group, kTrue, "start-up");
  if (names.empty() || base == nullptr) return {};
  std::string table = title + Text(" (n = %zu)\n", base->values.size());
  table += Text("  %-22s %26s %12s %9s\n", "", "ms: median (min..max)", "above true", "size MB");
  for (const auto& name : names) {
    const Series* time = record.Find(group, name, "start-up");
    const Series* size = record.Find(group, name, "size");
    if (time == nullptr) continue;
    table += Text("  %-22s %s %+12.2f", name.c_str(), Spread(time).c_str(), time->Median() - base->Median());
    if (size != nullptr) table += Text(" %9.2f", size->Median());
    table += "\n";
  }
  return table + "\n";
}

std::string AttachTable(const Record& record, const std::string& group, const std::string& title,
                        const char* base = kBare, const char* base_title = "x bare") {
  const Series* bare_add = record.Find(group, base, "ADD");
  const Series* bare_del = record.Find(group, base, "DEL");
  if (bare_add == nullptr) return {};
  std::string table = title + Text(" (n = %zu)\n", bare_add->values.size());
  table += Text("  %-30s %26s %7s %7s %26s %7s %8s\n", "", "ADD ms: median (min..max)", base_title, "CPU ms",
                "DEL ms: median (min..max)", base_title, "peak MB");
  for (const auto& name : NamesIn(record, group)) {
    const Series* add = record.Find(group, name, "ADD");
    const Series* del = record.Find(group, name, "DEL");
    const Series* cpu = record.Find(group, name, "ADD CPU");
    const Series* peak = record.Find(group, name, "peak memory");
    table += Text("  %-30s %s %s", name.c_str(), Spread(add).c_str(), Relative(add, bare_add).c_str());
    table += cpu != nullptr ? Text(" %7.2f", cpu->Median()) : Text("%8s", "");
    table += Text(" %s %s", Spread(del).c_str(), Relative(del, bare_del).c_str());
    if (peak != nullptr) table += Text(" %8.2f", peak->Median());
    table += "\n";
  }
  return table + "\n";
}

std::string HandoffTable(const Record& record) {
  const Series* time = record.Find(kHandoff, kRailhead, "ADD");
  if (time == nullptr) return {};
  return Text("The handoff in an ADD of eight VFs beside the kernel (n = %zu)\n  ", time->values.size()) +
         Spread(time) + " ms\n\n";
}

std::string DaemonTable(const Record& record) {
  const Series* resident = record.Find(kDaemon, "railheadd", "resident");
  if (resident == nullptr) return {};
  return Text("railheadd, registered with kubelet, 16 VFs: %.2f MB resident\n\n", resident->Median());
}

}  // namespace

std::string PercentileLine(const Series& series) {
  return Text("  %-24s %-30s %9.2f %9.2f %9.2f %-3s (n = %zu)\n", series.who.c_str(), series.what.c_str(),
              series.Median(), series.Percentile(0.99), series.Max(), series.unit.c_str(),
              series.values.size());
}

std::string PercentileHead() {
  return Text("  %-55s %9s %9s %9s\n", "", "p50", "p99", "max");
}

std::string Tables(const Record& record) {
  return StartupTable(record, kStartup, "Start-up on this machine: CNI_COMMAND=VERSION") +
         AttachTable(record, kStandIns, "Stand-ins (veth) in namespaces on this machine") +
         HandoffTable(record) + DaemonTable(record) + NodeTable(record) +
         RtnlTable(record, kRtnl, "Changes of a link beside /metrics/nics on the made-up node") +
         IpamTable(record) + StartupTable(record, kGuestStartup, "Start-up in the guest (emulated)") +
         AttachTable(record, kVf, "VFs with VLAN in the guest (emulated)") +
         AttachTable(record, kVfRxe, "VFs with VLAN and soft RoCE in the guest (emulated)") +
         AttachTable(record, kRails, "Eight VFs of a pod in the guest (emulated)", kIpBatch, "x batch") +
         AttachTable(record, kRailsRxe, "Eight VFs with soft RoCE in the guest (emulated)", kIpBatch,
                     "x batch") +
         AttachTable(record, kJournal, "One VF, by the length of the journal, in the guest (emulated)",
                     kOneEntry, "x 1") +
         AttachTable(record, kTenantOne, "One VF, by whose it was, in the guest (emulated)", kSameTenant,
                     "x same") +
         AttachTable(record, kTenantEight, "Eight VFs, by whose they were, in the guest (emulated)",
                     kSameTenant, "x same") +
         RtnlTable(record, kGuestRtnl, "Changes of a link beside /metrics/nics in the guest (emulated)");
}

}  // namespace railhead::bench
