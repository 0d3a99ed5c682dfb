// The checks of `railctl doctor`: what each is called, why it matters, and how it judges.
//
// Ids are stable: scripts name them. A check is a pure function over facts. docs/reference/doctor-checks.md
// states what each check reads and what to do. A judgement names its source beside it: the kernel's or
// NCCL's.
// Threads: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "netns/json/record.h"

namespace railhead::doctor {

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

}  // namespace railhead::doctor
