// The table and the budgets of the IPAM plugins.
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "bench/record.h"
#include "bench/verdict.h"

namespace railhead::bench {

// "" when it was not measured.
std::string IpamTable(const Record& record);
void JudgeIpam(const Record& record, std::vector<Verdict>& verdicts);

}  // namespace railhead::bench
