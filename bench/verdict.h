// The budgets, judged by what was measured.
//
// A budget that is missed is a result like any other; a figure that a part should have
// measured and did not is a failure.
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "bench/record.h"

namespace railhead::bench {

struct Verdict {
  enum class Outcome { kMet, kMissed, kNotMeasured };
  std::string budget;   // "ADD <= 1.5 x bare kernel + one IPAM exec, VF"
  std::string figures;  // "61.2 ms, budget 70.1 ms (1.5 x 45.0 + 2.6)"
  Outcome outcome = Outcome::kNotMeasured;
};

struct Parts {
  bool host = true;
  bool guest = true;
  bool node = true;
  bool ipam = true;
};

std::vector<Verdict> Judge(const Record& record, const Parts& parts);

// One line each.
std::string Show(const std::vector<Verdict>& verdicts);
bool AllMeasured(const std::vector<Verdict>& verdicts);

}  // namespace railhead::bench
