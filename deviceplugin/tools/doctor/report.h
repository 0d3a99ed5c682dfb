// Which checks run, and how their findings are shown: docs/reference/doctor-checks.md has the shape.
//
// Threads: pure functions. Errors: kInvalid for an id that no check has.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::doctor {

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
