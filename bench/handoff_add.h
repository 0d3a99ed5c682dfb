// What the handoff of eight VFs costs beside the kernel: ADD on the kernel of the tests, in this process.
//
// Of the phases that the plugin logs only this one: it makes files of what is known, and asks the
// kernel for a route and a name. Where ADD changes something, that kernel takes its time to follow
// in a made-up sysfs. IPAM is the real railhead-ipam.
// The series is of the group kHandoff (report.h). Errors: those of ADD and DEL.
#pragma once

#include <string>

#include "bench/record.h"
#include "netns/base/result.h"

namespace railhead::bench {

// `directory`: an empty one, for the node's files; `programs`: where railhead-ipam is. Changes the
// environment, which delegated plugins inherit.
Result<void> MeasureHandoff(const std::string& directory, const std::string& programs, int rounds,
                            Record* record);

}  // namespace railhead::bench
