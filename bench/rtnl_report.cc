#include "bench/rtnl_report.h"

#include "bench/report.h"
#include "bench/text.h"

namespace railhead::bench {
namespace {

constexpr double kP99 = 0.99;
constexpr double kComputingFactor = 2;

std::string Times(const char* name, const Series& series) {
  return Text("  %-30s %9.1f %9.1f %9.1f", name, series.Median(), series.Percentile(kP99), series.Max());
}

Verdict AtMost(const Record& record, const char* group, const char* base, double factor, std::string budget) {
  const Series* ours = record.Find(group, kScraping, kChange);
  const Series* computing = record.Find(group, kComputing, kChange);
  const Series* listing = record.Find(group, kListing, kChange);
  const Series* alone = record.Find(group, kAlone, kChange);
  if (ours == nullptr || computing == nullptr || listing == nullptr || alone == nullptr)
    return {std::move(budget), "not measured", Verdict::Outcome::kNotMeasured};
  const double ratio = ours->Percentile(kP99) / record.Find(group, base, kChange)->Percentile(kP99);
  return {
      std::move(budget),
      Text("%.2f x: %.0f us; beside nothing %.0f us, a process that computes %.0f us, one that lists links "
           "%.0f us",
           ratio, ours->Percentile(kP99), alone->Percentile(kP99), computing->Percentile(kP99),
           listing->Percentile(kP99)),
      ratio <= factor ? Verdict::Outcome::kMet : Verdict::Outcome::kMissed};
}

}  // namespace

std::string RtnlTable(const Record& record, const std::string& group, const std::string& title) {
  const Series* base = record.Find(group, kComputing, kChange);
  if (base == nullptr) return {};
  std::string table = title + Text(" (n = %zu)\n", base->values.size());
  table +=
      Text("  %-30s %9s %9s %9s %10s %15s\n", "us, beside", "p50", "p99", "max", "x p99", "ms a list, page");
  for (const char* who : {kAlone, kComputing, kListing, kScraping}) {
    const Series* change = record.Find(group, who, kChange);
    if (change == nullptr) continue;
    table += Times(who, *change) + Text(" %9.2fx", change->Percentile(kP99) / base->Percentile(kP99));
    const Series* piece = record.Find(group, who, kPieceTime);
    if (piece != nullptr && (who == kListing || who == kScraping)) table += Text(" %15.1f", piece->Median());
    table += "\n";
  }
  for (const char* what : {kAskedPort, kAskedDriver}) {
    const Series* asked = record.Find(group, kAsking, what);
    if (asked != nullptr) table += Times(what, *asked) + "\n";
  }
  return table + "\n";
}

void JudgeRtnlOfNode(const Record& record, std::vector<Verdict>& verdicts) {
  verdicts.push_back(
      AtMost(record, kRtnl, kComputing, kComputingFactor,
             "a change of a link beside scrapes of 1,024 VFs: p99 <= 2 x that beside a process "
             "that computes"));
}

void JudgeRtnlOfGuest(const Record& record, std::vector<Verdict>& verdicts) {
  verdicts.push_back(
      AtMost(record, kGuestRtnl, kListing, 1,
             "a change of a link beside scrapes of real PFs in the guest: p99 <= that beside a "
             "process that lists links"));
}

}  // namespace railhead::bench
