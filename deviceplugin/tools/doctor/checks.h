// The checks of `railctl doctor`: what each is called, why it matters, and how it judges.
//
// Ids are stable: scripts name them. A check is a pure function over facts; docs/doctor.md tells
// what each looks at and what to do. Sources of what is judged: the kernel's and NCCL's, named
// beside the judgement.
// Threads: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/finding.h"

namespace railhead::doctor {

struct Check {
  std::string_view id;
  std::string_view title;
  std::string_view why;
  FactKinds facts;  // what judge() looks at
  Verdict (*judge)(const NodeFacts&);
};

// In the order in which they are shown.
std::span<const Check> AllChecks();

Verdict CheckFabric(const NodeFacts& facts);
Verdict CheckRails(const NodeFacts& facts);
Verdict CheckCabling(const NodeFacts& facts);
Verdict CheckRdmaMode(const NodeFacts& facts);
Verdict CheckPorts(const NodeFacts& facts);
Verdict CheckGids(const NodeFacts& facts);
Verdict CheckAcs(const NodeFacts& facts);
Verdict CheckIommu(const NodeFacts& facts);
Verdict CheckGpuDirect(const NodeFacts& facts);
Verdict CheckMtu(const NodeFacts& facts);
Verdict CheckArp(const NodeFacts& facts);
Verdict CheckProbes(const NodeFacts& facts);
Verdict CheckDscp(const NodeFacts& facts);
Verdict CheckPfc(const NodeFacts& facts);
Verdict CheckEts(const NodeFacts& facts);
Verdict CheckEcn(const NodeFacts& facts);
Verdict CheckVfCount(const NodeFacts& facts);
Verdict CheckAri(const NodeFacts& facts);
Verdict CheckVfOrder(const NodeFacts& facts);
Verdict CheckBandwidth(const NodeFacts& facts);
Verdict CheckMemlock(const NodeFacts& facts);
Verdict CheckModules(const NodeFacts& facts);
Verdict CheckFirmware(const NodeFacts& facts);
Verdict CheckRecords(const NodeFacts& facts);
Verdict CheckCdi(const NodeFacts& facts);
Verdict CheckPlugins(const NodeFacts& facts);
Verdict CheckCni(const NodeFacts& facts);
Verdict CheckKubelet(const NodeFacts& facts);
Verdict CheckNetns(const NodeFacts& facts);

}  // namespace railhead::doctor
