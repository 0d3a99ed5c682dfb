#include "bench/ipam_verdict.h"

#include "bench/contender.h"
#include "bench/ipam_series.h"
#include "bench/report.h"
#include "bench/text.h"

namespace railhead::bench {
namespace {

constexpr double kTakenFactor = 5;
constexpr double kRailsFactor = 1.5;
constexpr double kBurstFactor = 1.5;
constexpr double kTailFactor = 10;
constexpr double kP99 = 0.99;

struct Pair {
  const Series* ours;
  const Series* base;
};

Pair Both(const Record& record, const char* what, const char* base_who = kHostLocal) {
  return {record.Find(kIpamGroup, kIpam, what), record.Find(kIpamGroup, base_who, what)};
}

// `met` of the ratio of the medians, base / ours.
template <typename Met>
Verdict ByRatio(std::string budget, const Pair& pair, Met met) {
  if (pair.ours == nullptr || pair.base == nullptr)
    return {std::move(budget), "not measured", Verdict::Outcome::kNotMeasured};
  const double ratio = pair.base->Median() / pair.ours->Median();
  return {std::move(budget),
          Text("%.2f x: %.2f %s beside %.2f %s", ratio, pair.ours->Median(), pair.ours->unit.c_str(),
               pair.base->Median(), pair.base->unit.c_str()),
          met(ratio) ? Verdict::Outcome::kMet : Verdict::Outcome::kMissed};
}

Verdict Tail(const Record& record) {
  std::string budget = "railhead-ipam, 32 at once: p99 below 10 x median";
  const Series* took = record.Find(kIpamGroup, kIpam, kAddBurst);
  if (took == nullptr) return {std::move(budget), "not measured", Verdict::Outcome::kNotMeasured};
  const double p99 = took->Percentile(kP99);
  return {std::move(budget),
          Text("p99 %.1f ms, median %.1f ms, max %.1f ms", p99, took->Median(), took->Max()),
          p99 < kTailFactor * took->Median() ? Verdict::Outcome::kMet : Verdict::Outcome::kMissed};
}

}  // namespace

std::string IpamTable(const Record& record) {
  std::string lines;
  for (const Series& series : record.all()) {
    if (series.group != kIpamGroup || series.values.empty()) continue;
    lines += PercentileLine(series);
  }
  if (lines.empty()) return {};
  return "IPAM plugins alone, as processes, state on a disk\n" + PercentileHead() + lines + "\n";
}

void JudgeIpam(const Record& record, std::vector<Verdict>& verdicts) {
  verdicts.push_back(ByRatio("ADD of railhead-ipam no slower than host-local, empty pool",
                             Both(record, kAddEmpty), [](double ratio) { return ratio >= 1; }));
  verdicts.push_back(ByRatio("... at least 5 x faster with 900 addresses taken", Both(record, kAddTaken),
                             [](double ratio) { return ratio >= kTakenFactor; }));
  verdicts.push_back(
      ByRatio("ADD of eight rails below 1.5 x one rail",
              {record.Find(kIpamGroup, kIpam, kAddEight), record.Find(kIpamGroup, kIpam, kAddEmpty)},
              [](double ratio) { return 1 / ratio < kRailsFactor; }));
  const auto [ours, theirs] = Both(record, kThroughput);
  // More is better: the other way round.
  verdicts.push_back(ByRatio("32 at once: at least 1.5 x host-local's throughput, every commit durable",
                             {theirs, ours}, [](double ratio) { return ratio >= kBurstFactor; }));
  verdicts.push_back(Tail(record));
  verdicts.push_back(ByRatio("1,000 pods x 8 rails within the time of their synced commits",
                             Both(record, kThousandPods, kSyncedCommits),
                             [](double ratio) { return ratio >= 1; }));
}

}  // namespace railhead::bench
