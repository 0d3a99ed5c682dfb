// The checks of `railctl doctor`: what each is called, why it matters, and how it judges.
//
// Ids are stable: scripts name them. A check is a pure function over facts. docs/reference/doctor-checks.md
// states what each check reads and what to do. A judgement names its source beside it: the kernel's or
// NCCL's.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/tools/doctor/facts.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::doctor {

// The result of a check: a status, the observations, and what to do.
//
// Threads: plain values.

// In the order of severity.
enum class Status : std::uint8_t {
  kSkipped,  // a fact that it needs cannot be read
  kOk,
  kNote,     // worth knowing; not a fault
  kWarning,  // works, but slower or less safely than it could
  kFailure,  // pods fail, or train over the wrong network
};

struct Observation {
  Status status = Status::kSkipped;
  std::string text;  // "pf0: MTU 1500"
  std::string fix;   // what to do about it; "": nothing
  bool operator==(const Observation&) const = default;

  static void List(auto& f) {
    f("status", &Observation::status);
    f("text", &Observation::text);
    f("fix", &Observation::fix, kSparseField);
  }
};

// The observations of a check, one for each thing that it examined. The worst one counts.
class Verdict {
 public:
  Verdict& Add(Status status, std::string text, std::string fix = {});
  Verdict& Ok(std::string text) { return Add(Status::kOk, std::move(text)); }
  Verdict& Note(std::string text, std::string fix = {}) {
    return Add(Status::kNote, std::move(text), std::move(fix));
  }
  Verdict& Warn(std::string text, std::string fix) {
    return Add(Status::kWarning, std::move(text), std::move(fix));
  }
  Verdict& Fail(std::string text, std::string fix) {
    return Add(Status::kFailure, std::move(text), std::move(fix));
  }
  Verdict& Skip(std::string reason) { return Add(Status::kSkipped, std::move(reason)); }

  // kSkipped without any observation.
  [[nodiscard]] Status status() const;
  // The observations that decide its status, a few of them. Equal observations of several things are
  // combined.
  [[nodiscard]] std::string Found() const;
  // The first fix of those observations.
  [[nodiscard]] std::string Fix() const;
  [[nodiscard]] const std::vector<Observation>& observations() const { return observations_; }

  static void List(auto& f) {
    f.Output("status", &Verdict::status);
    f.Output("found", &Verdict::Found);
    f.Output("fix", &Verdict::Fix, kSparseField);
    f.Output("observations", &Verdict::observations);
  }

 private:
  std::vector<Observation> observations_;
};

struct Check {
  std::string_view id;
  std::string_view title;
  std::string_view why;
  Verdict (*judge)(const NodeFacts&);

  static void List(auto& f) {
    f("id", &Check::id, {.column = "CHECK"});
    f("title", &Check::title, {.column = "WHAT"});
    f("why", &Check::why, {.column = "WHY", .wide = kWide});
  }
};

// In the order in which they are shown.
std::span<const Check> AllChecks();

Verdict CheckFabric(const NodeFacts& facts);
Verdict CheckRails(const NodeFacts& facts);
Verdict CheckIndex(const NodeFacts& facts);
Verdict CheckCabling(const NodeFacts& facts);
Verdict CheckRdmaMode(const NodeFacts& facts);
Verdict CheckPorts(const NodeFacts& facts);
Verdict CheckGids(const NodeFacts& facts);
Verdict CheckNodeGuids(const NodeFacts& facts);
Verdict CheckAcs(const NodeFacts& facts);
Verdict CheckIommu(const NodeFacts& facts);
Verdict CheckGpuDirect(const NodeFacts& facts);
Verdict CheckGpuIds(const NodeFacts& facts);
Verdict CheckMtu(const NodeFacts& facts);
Verdict CheckRoutes(const NodeFacts& facts);
Verdict CheckArp(const NodeFacts& facts);
Verdict CheckManaged(const NodeFacts& facts);
Verdict CheckProbes(const NodeFacts& facts);
Verdict CheckDscp(const NodeFacts& facts);
Verdict CheckPfc(const NodeFacts& facts);
Verdict CheckEts(const NodeFacts& facts);
Verdict CheckEcn(const NodeFacts& facts);
Verdict CheckVfCount(const NodeFacts& facts);
Verdict CheckAri(const NodeFacts& facts);
Verdict CheckVfOrder(const NodeFacts& facts);
Verdict CheckBandwidth(const NodeFacts& facts);
Verdict CheckSpoofing(const NodeFacts& facts);
Verdict CheckKernel(const NodeFacts& facts);
Verdict CheckMemlock(const NodeFacts& facts);
Verdict CheckModules(const NodeFacts& facts);
Verdict CheckFirmware(const NodeFacts& facts);
Verdict CheckFiles(const NodeFacts& facts);
Verdict CheckRecords(const NodeFacts& facts);
Verdict CheckCdi(const NodeFacts& facts);
Verdict CheckPlugins(const NodeFacts& facts);
Verdict CheckCni(const NodeFacts& facts);
Verdict CheckKubelet(const NodeFacts& facts);
Verdict CheckNetns(const NodeFacts& facts);
Verdict CheckSelinux(const NodeFacts& facts);
Verdict CheckNetAdmins(const NodeFacts& facts);

// Which checks run, and how their findings are shown: docs/reference/doctor-checks.md has the shape.
//
// Threads: pure functions. Errors: kInvalid for an id that no check has.

// If `only` is empty: all checks. An id names one check, "rdma.port", or every check that begins with it,
// "rdma".
Result<std::vector<const Check*>> SelectChecks(const std::vector<std::string>& only,
                                               const std::vector<std::string>& skip);

struct Finding {
  const Check* check = nullptr;
  Verdict verdict;

  static void List(auto& f) {
    f.Part(&Finding::check);
    f.Part(&Finding::verdict);
  }
};

struct Report {
  std::string node;
  std::vector<Finding> findings;  // in the order of the checks
  double elapsed_ms = 0;

  [[nodiscard]] Status Worst() const;  // kSkipped without findings
  [[nodiscard]] int Count(Status status) const;
  // By the statuses' names, the worst first.
  [[nodiscard]] std::vector<std::pair<std::string, int>> Counts() const;

  static void List(auto& f) {
    f.Version(1);
    f("node", &Report::node);
    f("elapsedMs", &Report::elapsed_ms);
    f.Output("counts", &Report::Counts);
    f("checks", &Report::findings);
  }
};

Report RunChecks(const NodeFacts& facts, const std::vector<const Check*>& checks);

// The worst first.
std::string ReportAsText(const Report& report);

}  // namespace railhead::doctor

template <>
struct railhead::Names<railhead::doctor::Status> {
  using Status = doctor::Status;
  static constexpr std::array kAll = {
      std::pair{"skipped", Status::kSkipped}, std::pair{"ok", Status::kOk}, std::pair{"note", Status::kNote},
      std::pair{"warning", Status::kWarning}, std::pair{"failure", Status::kFailure}};
};
