// ADD and DEL of all contenders, taking turns (A B C A B C ...), so that whatever else
// the machine does meets all of them alike. Needs root.
#pragma once

#include "bench/record.h"
#include "bench/setting.h"
#include "netns/base/result.h"

namespace railhead::bench {

// One unmeasured round, `rounds` measured ones, one for the peak memory. Every ADD and
// DEL is checked, outside of the measured time. The namespaces of MakeContenders() must
// exist.
Result<void> MeasureAttach(const Setting& setting, Record& record);

}  // namespace railhead::bench
