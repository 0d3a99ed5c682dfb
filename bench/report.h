// Tables of a record, for people.
// Threads: pure.
#pragma once

#include <string>

#include "bench/record.h"

namespace railhead::bench {

// The groups that the parts of bench/run.sh write.
inline constexpr const char* kStartup = "startup";
inline constexpr const char* kStandIns = "stand-ins";
inline constexpr const char* kDaemon = "daemon";
inline constexpr const char* kGuestStartup = "guest-startup";
inline constexpr const char* kHandoff = "handoff";
inline constexpr const char* kVf = "vf";
inline constexpr const char* kVfRxe = "vf-rxe";
inline constexpr const char* kRails = "rails";
inline constexpr const char* kRailsRxe = "rails-rxe";
inline constexpr const char* kJournal = "journal";
inline constexpr const char* kTenantOne = "tenant-one";
inline constexpr const char* kTenantEight = "tenant-eight";
inline constexpr const char* kNode = "node";
inline constexpr const char* kRtnl = "rtnl";
inline constexpr const char* kGuestRtnl = "guest-rtnl";

// "  WHO  WHAT   p50   p99   max UNIT", and what stands above such lines. `series` is not empty.
std::string PercentileLine(const Series& series);
std::string PercentileHead();

// One table for each group that was measured.
std::string Tables(const Record& record);

}  // namespace railhead::bench
