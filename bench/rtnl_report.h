// Changes of network settings beside scrapes of /metrics/nics (rtnl_work.h): the names of the series, their
// table, and how they are judged.
//
// Judged is the 99th percentile beside scrapes. On this machine against that beside a process that takes as
// much of the processors and no lock: the difference is the lock's. In the guest against that beside one that
// lists links, which takes the lock as well: there a processor may stop in the middle of anything, and who
// needs the lock that it holds waits for it. Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "bench/record.h"
#include "bench/verdict.h"

namespace railhead::bench {

// Who: what runs beside.
inline constexpr const char* kAlone = "nothing";
inline constexpr const char* kComputing = "a process that computes";
inline constexpr const char* kListing = "a process that lists links";
inline constexpr const char* kScraping = "scrapes";
inline constexpr const char* kAsking = "one question";
// What.
inline constexpr const char* kChange = "a change of a link";
// Each is answered under RTNL, so no longer than that does one of them hold others up.
inline constexpr const char* kAskedPort = "asking for a PF and its VFs";
inline constexpr const char* kAskedDriver = "asking the driver of a PF";
inline constexpr const char* kPieceTime = "one piece of what is beside";

std::string RtnlTable(const Record& record, const std::string& group, const std::string& title);
void JudgeRtnlOfNode(const Record& record, std::vector<Verdict>& verdicts);
void JudgeRtnlOfGuest(const Record& record, std::vector<Verdict>& verdicts);

}  // namespace railhead::bench
