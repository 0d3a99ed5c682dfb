// All VFs of a pod in one ADD beside two `ip -batch` and the standard plugins one after the
// other; what conflict detection adds; and what a long journal costs. Contenders take
// turns (A B C A B C ...). Needs root, and the namespaces /run/netns/bench-0 .. bench-2.
#pragma once

#include "bench/rail_contenders.h"
#include "bench/record.h"
#include "netns/base/result.h"

namespace railhead::bench {

inline constexpr const char* kRailheadProbing = "railhead, conflict detection";
inline constexpr const char* kRailheadBefore = "railhead, before";
inline constexpr const char* kSameTenant = "the same namespace";
inline constexpr const char* kOtherTenant = "another namespace";
inline constexpr const char* kOneEntry = "1 entry";
inline constexpr const char* kManyEntries = "1000 entries";
// As AddPhases() calls a phase that railhead logs.
inline constexpr const char* kHandoffPhase = "- handoff";

// One unmeasured round and `rounds` measured ones. Every ADD and DEL is checked, outside
// of the measured time: all devices in the pod with carrier, address, rule and route, and back
// under their names. Of railhead, the phases that it logs are recorded too.
Result<void> MeasureRails(const RailsSetting& setting, Record& record);

// Railhead beside an earlier build of it and nobody else, who begins changing with each round.
Result<void> MeasureBefore(const RailsSetting& setting, Record& record);

// Pods of two namespaces in turn, two pods of each: the first gets the devices of the other namespace, which
// are made anew for it. The fabric must permit any device to them.
Result<void> MeasureTenants(const RailsSetting& setting, Record& record);

// The first device alone, with 1 and with 1,000 attachments of other pods in the journal.
// The journal must be empty, and is afterwards.
Result<void> MeasureJournal(const RailsSetting& setting, Record& record);

}  // namespace railhead::bench
