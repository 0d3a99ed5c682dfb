// What starting each binary costs, and how large it is. The work done is CNI's VERSION;
// /bin/true is what the machine charges for any process.
#pragma once

#include <string>
#include <vector>

#include "bench/record.h"
#include "netns/base/result.h"

namespace railhead::bench {

// `rounds` turns over /bin/true and all programs; series "start-up" of `group`, named
// after the file, and "size".
Result<void> MeasureStartup(const std::vector<std::string>& programs, int rounds, const std::string& group,
                            Record& record);

}  // namespace railhead::bench
