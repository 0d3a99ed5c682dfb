// Parses the log that a runtime writes of a container.
//
// Source: CRI logging format, one line "TIME STREAM TAGS TEXT" per write or line. STREAM is stdout or stderr.
// The first tag is F (the line is complete) or P (it continues in the next entry of that stream).
// Threads: pure function.
#pragma once

#include <string>
#include <string_view>

#include "netns/base/result.h"

namespace railhead::testing {

struct ContainerOutput {
  std::string out;
  std::string err;
};

// kMalformed names the first line that is not an entry. A last line without its end is still being written,
// so it is omitted.
Result<ContainerOutput> ParseContainerLog(std::string_view log);

}  // namespace railhead::testing
