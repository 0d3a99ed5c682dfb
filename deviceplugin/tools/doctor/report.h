// Which checks are run, and how what they found is shown: docs/doctor.md has the shape.
//
// Threads: pure functions. Errors: kInvalid for an id that no check has.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "deviceplugin/tools/doctor/checks.h"
#include "netns/base/result.h"

namespace railhead::doctor {

// `only` empty: all. An id is that of a check, "rdma.port", or of all that begin like it, "rdma".
Result<std::vector<const Check*>> SelectChecks(const std::vector<std::string>& only,
                                               const std::vector<std::string>& skip);

struct Finding {
  const Check* check = nullptr;
  Verdict verdict;
};

struct Report {
  std::string node;
  std::vector<Finding> findings;  // in the order of the checks
  double elapsed_ms = 0;

  [[nodiscard]] Status Worst() const;  // kSkipped when there are none
  [[nodiscard]] int Count(Status status) const;
};

// All that they look at.
FactKinds FactsFor(const std::vector<const Check*>& checks);

Report RunChecks(const NodeFacts& facts, const std::vector<const Check*>& checks);

nlohmann::json ReportAsJson(const Report& report);
// The worst first.
std::string ReportAsText(const Report& report);

}  // namespace railhead::doctor
