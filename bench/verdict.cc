#include "bench/verdict.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "bench/contender.h"
#include "bench/ipam_verdict.h"
#include "bench/node_series.h"
#include "bench/rails.h"
#include "bench/report.h"
#include "bench/rtnl_report.h"

namespace railhead::bench {
namespace {

constexpr double kBareFactor = 1.5;
constexpr double kChainFactor = 3;
constexpr double kBatchFactor = 1.25;
constexpr double kEightChainsFactor = 4;
constexpr double kJournalFactor = 1.1;
constexpr double kHandoffMs = 2;
constexpr double kPluginMb = 3;
constexpr double kDaemonMb = 20;
// railheadd with 1,024 VFs.
constexpr double kDiscoveryMs = 60;
constexpr double kDoctorMs = 200;
constexpr double kAllocateUs = 100;
constexpr double kPreferUs = 1000;
constexpr double kIdlePercent = 0.1;
constexpr double kHotPlugMs = 1000;
constexpr double kNicsMs = 50;
constexpr double kP99 = 0.99;
// The budget for start-up was set on a machine that takes this long for /bin/true; a
// slower one gets as much more.
constexpr double kStartupMs = 0.3;
constexpr double kReferenceTrueMs = 0.66;

std::string Number(double value) {
  std::array<char, 64> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%.2f", value);
  return buffer.data();
}

Verdict NotMeasured(std::string budget) {
  return {std::move(budget), "not measured", Verdict::Outcome::kNotMeasured};
}

Verdict Judged(std::string budget, std::string figures, bool met) {
  return {std::move(budget), std::move(figures), met ? Verdict::Outcome::kMet : Verdict::Outcome::kMissed};
}

Verdict AddBesideBare(const Record& record, const std::string& group, const std::string& where) {
  const std::string budget = "ADD <= 1.5 x bare kernel + one IPAM exec, " + where;
  const Series* add = record.Find(group, kRailhead, "ADD");
  const Series* bare = record.Find(group, kBare, "ADD");
  const Series* ipam = record.Find(group, kIpam, "ADD");
  if (add == nullptr || bare == nullptr || ipam == nullptr) return NotMeasured(budget);
  const double limit = kBareFactor * bare->Median() + ipam->Median();
  return Judged(budget,
                Number(add->Median()) + " ms; budget " + Number(limit) + " ms = 1.5 x " +
                    Number(bare->Median()) + " + " + Number(ipam->Median()),
                add->Median() <= limit);
}

Verdict AddBesideChain(const Record& record) {
  const std::string budget = "ADD at least 3 x faster than host-device + host-local + tuning + sbr, VF";
  const Series* add = record.Find(kVf, kRailhead, "ADD");
  const Series* chain = record.Find(kVf, kHostDevice, "ADD");
  if (add == nullptr || chain == nullptr) return NotMeasured(budget);
  const double factor = chain->Median() / add->Median();
  std::string figures =
      Number(factor) + " x: " + Number(add->Median()) + " ms beside " + Number(chain->Median()) + " ms";
  // How much of that is out of any plugin's reach.
  if (const Series* bare = record.Find(kVf, kBare, "ADD"); bare != nullptr) {
    figures += " (the bare kernel alone: " + Number(chain->Median() / bare->Median()) + " x)";
  }
  return Judged(budget, figures, factor >= kChainFactor);
}

// ADD of one series at most `factor` times that of another.
Verdict Within(const Record& record, std::string budget, const char* group, const char* who, const char* base,
               double factor) {
  const Series* add = record.Find(group, who, "ADD");
  const Series* to = record.Find(group, base, "ADD");
  if (add == nullptr || to == nullptr) return NotMeasured(std::move(budget));
  const double ratio = add->Median() / to->Median();
  return Judged(std::move(budget),
                Number(ratio) + " x: " + Number(add->Median()) + " ms beside " + Number(to->Median()) + " ms",
                ratio <= factor);
}

// ADD of `who` at least `factor` times as fast as that of `base`.
Verdict Faster(const Record& record, std::string budget, const char* group, const char* who, const char* base,
               double factor) {
  const Series* add = record.Find(group, who, "ADD");
  const Series* to = record.Find(group, base, "ADD");
  if (add == nullptr || to == nullptr) return NotMeasured(std::move(budget));
  const double ratio = to->Median() / add->Median();
  return Judged(std::move(budget),
                Number(ratio) + " x: " + Number(add->Median()) + " ms beside " + Number(to->Median()) + " ms",
                ratio >= factor);
}

// The budget was set on the machine of the start-up budget.
Verdict Handoff(const Record& record, const std::string& where, const Series* phase, const char* startup) {
  const std::string budget = "handoff of eight VFs < 2 ms beside the kernel, " + where;
  const Series* base = record.Find(startup, kTrue, "start-up");
  if (phase == nullptr || base == nullptr) return NotMeasured(budget);
  const double limit = kHandoffMs * std::max(1.0, base->Median() / kReferenceTrueMs);
  return Judged(budget,
                Number(phase->Median()) + " ms; budget " + Number(limit) + " ms on a machine that takes " +
                    Number(base->Median()) + " ms for /bin/true",
                phase->Median() < limit);
}

void JudgeRails(const Record& record, std::vector<Verdict>& verdicts) {
  verdicts.push_back(
      Within(record, "ADD of eight VFs <= 1.25 x two ip -batch", kRails, kRailhead, kIpBatch, kBatchFactor));
  verdicts.push_back(Within(record, "ADD of eight VFs with soft RoCE <= 1.25 x two ip -batch + rdma -batch",
                            kRailsRxe, kRailhead, kIpBatch, kBatchFactor));
  verdicts.push_back(Faster(record, "ADD of eight VFs at least 4 x faster than eight host-device chains",
                            kRails, kRailhead, kHostDevice, kEightChainsFactor));
  verdicts.push_back(Within(record, "ADD with 1,000 journal entries within 10 % of that with 1", kJournal,
                            kManyEntries, kOneEntry, kJournalFactor));
  verdicts.push_back(Handoff(record, "with soft RoCE in the guest",
                             record.Find(kRailsRxe, kHandoffPhase, "ADD"), kGuestStartup));
}

Verdict Startup(const Record& record, const std::string& who) {
  const std::string budget = "start-up of " + who + " <= 0.3 ms above /bin/true";
  const Series* time = record.Find(kStartup, who, "start-up");
  const Series* base = record.Find(kStartup, kTrue, "start-up");
  if (time == nullptr || base == nullptr) return NotMeasured(budget);
  const double above = time->Median() - base->Median();
  const double limit = kStartupMs * std::max(1.0, base->Median() / kReferenceTrueMs);
  return Judged(budget,
                Number(above) + " ms above; budget " + Number(limit) + " ms on a machine that takes " +
                    Number(base->Median()) + " ms for /bin/true",
                above <= limit);
}

Verdict Below(const std::string& budget, const Series* series, double limit) {
  if (series == nullptr) return NotMeasured(budget);
  return Judged(budget, Number(series->Median()) + " MB", series->Median() < limit);
}

void JudgeHost(const Record& record, std::vector<Verdict>& verdicts) {
  verdicts.push_back(Handoff(record, "on this machine", record.Find(kHandoff, kRailhead, "ADD"), kStartup));
  for (const char* who : {kRailhead, kIpam}) verdicts.push_back(Startup(record, who));
  for (const char* who : {kRailhead, kIpam}) {
    verdicts.push_back(
        Below(std::string("size of ") + who + " < 3 MB", record.Find(kStartup, who, "size"), kPluginMb));
  }
  verdicts.push_back(
      Below("railheadd < 20 MB resident", record.Find(kDaemon, "railheadd", "resident"), kDaemonMb));
}

Verdict Discovery(const Record& record) {
  const std::string budget = "discovery of 1,024 VFs < 60 ms";
  const Series* time = record.Find(kNode, kDaemonName, kDiscovery);
  const Series* bare = record.Find(kNode, kBareReading, kDiscovery);
  if (time == nullptr || bare == nullptr) return NotMeasured(budget);
  return Judged(budget,
                Number(time->Median()) + " ms, " + Number(time->Median() / bare->Median()) +
                    " x reading the same files and no more (" + Number(bare->Median()) + " ms)",
                time->Median() < kDiscoveryMs);
}

Verdict Doctor(const Record& record) {
  const std::string budget = "railctl doctor with 1,024 VFs < 200 ms";
  const Series* time = record.Find(kNode, kRailctl, kDoctor);
  const Series* start = record.Find(kNode, kRailctl, kDoctorStart);
  const Series* bare = record.Find(kNode, kBareReading, kDoctor);
  if (time == nullptr || start == nullptr || bare == nullptr) return NotMeasured(budget);
  return Judged(budget,
                Number(time->Median()) + " ms, of it " + Number(start->Median()) +
                    " ms start and end of the process; reading what most files are of and no more: " +
                    Number(bare->Median()) + " ms",
                time->Median() < kDoctorMs);
}

// Its own work: what it takes where a durable write is free.
Verdict AllocateWork(const Record& record) {
  const std::string budget = "Allocate's own work < 100 us (p99) beside one durable write";
  const Series* own = record.Find(kNode, kDaemonName, kAllocateOne);
  const Series* disk = record.Find(kNode, kOnDisk, kAllocateOne);
  const Series* write = record.Find(kNode, kDurableWrite, kAllocateOne);
  if (own == nullptr || disk == nullptr || write == nullptr) return NotMeasured(budget);
  return Judged(budget,
                Number(own->Percentile(kP99)) + " us (p50 " + Number(own->Median()) + "); on disk " +
                    Number(disk->Median() / 1e3) + " ms beside " + Number(write->Median() / 1e3) +
                    " ms for one durable write alone",
                own->Percentile(kP99) < kAllocateUs);
}

// Below `limit`, its 99th percentile or its largest value.
Verdict BelowAt(std::string budget, const Series* series, double share, double limit) {
  if (series == nullptr) return NotMeasured(std::move(budget));
  const double value = series->Percentile(share);
  return Judged(std::move(budget),
                Number(value) + " " + series->unit + " (p50 " + Number(series->Median()) + ")",
                value < limit);
}

// A run with fewer devices (bench/node.sh -n) shows that it works, and no more.
void SayHowMany(const Record& record, std::size_t first, std::vector<Verdict>& verdicts) {
  constexpr double kAll = 1024;
  const Series* devices = record.Find(kNode, kDaemonName, kDevices);
  if (devices == nullptr || devices->Median() >= kAll) return;
  for (std::size_t i = first; i < verdicts.size(); ++i) {
    verdicts[i].figures +=
        "; with no more than " + std::to_string(static_cast<int>(devices->Median())) + " VFs";
  }
}

void JudgeNode(const Record& record, std::vector<Verdict>& verdicts) {
  const std::size_t first = verdicts.size();
  verdicts.push_back(Discovery(record));
  verdicts.push_back(AllocateWork(record));
  verdicts.push_back(BelowAt("preferred allocation of 8 out of 1,024 VFs < 1 ms (p99)",
                             record.Find(kNode, kDaemonName, kPreferEight), kP99, kPreferUs));
  for (const char* who : {kDaemonName, kLatePool}) {
    verdicts.push_back(BelowAt(std::string(who) + " with 1,024 VFs < 20 MB resident",
                               record.Find(kNode, who, kResident), 1, kDaemonMb));
  }
  verdicts.push_back(BelowAt("idle railheadd with 1,024 VFs < 0.1 % of a core",
                             record.Find(kNode, kDaemonName, kIdleCpu), 1, kIdlePercent));
  verdicts.push_back(BelowAt("a change of the node told to kubelet < 1 s (max)",
                             record.Find(kNode, kDaemonName, kHotPlug), 1, kHotPlugMs));
  verdicts.push_back(BelowAt("a scrape of 1,024 VFs in pods < 50 ms of CPU (p50)",
                             record.Find(kNode, kDaemonName, kNics), 0.5, kNicsMs));
  JudgeRtnlOfNode(record, verdicts);
  verdicts.push_back(Doctor(record));
  SayHowMany(record, first, verdicts);
}

}  // namespace

std::vector<Verdict> Judge(const Record& record, const Parts& parts) {
  std::vector<Verdict> verdicts;
  if (parts.host) {
    verdicts.push_back(AddBesideBare(record, kStandIns, "stand-ins"));
  }
  if (parts.guest) {
    verdicts.push_back(AddBesideBare(record, kVf, "VF"));
    verdicts.push_back(AddBesideBare(record, kVfRxe, "VF with soft RoCE"));
    verdicts.push_back(AddBesideChain(record));
    JudgeRails(record, verdicts);
    JudgeRtnlOfGuest(record, verdicts);
  }
  if (parts.host) JudgeHost(record, verdicts);
  if (parts.node) JudgeNode(record, verdicts);
  if (parts.ipam) JudgeIpam(record, verdicts);
  return verdicts;
}

std::string Show(const std::vector<Verdict>& verdicts) {
  std::string text = "Budgets\n";
  for (const auto& verdict : verdicts) {
    const char* word = verdict.outcome == Verdict::Outcome::kMet      ? "met    "
                       : verdict.outcome == Verdict::Outcome::kMissed ? "MISSED "
                                                                      : "FAILED ";
    text += std::string("  ") + word + " " + verdict.budget + "\n          " + verdict.figures + "\n";
  }
  return text;
}

bool AllMeasured(const std::vector<Verdict>& verdicts) {
  return std::none_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.outcome == Verdict::Outcome::kNotMeasured;
  });
}

}  // namespace railhead::bench
