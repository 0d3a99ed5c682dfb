// The log that a runtime writes of a container, made readable.
//
// Source: CRI logging format, one line "TIME STREAM TAGS TEXT" per write or line; STREAM
// is stdout or stderr, the first tag F (the line is complete) or P (it goes on in the
// next entry of that stream).
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

// kMalformed names the first line that is no entry. A last line without its end is one
// that is still being written: it is left out.
Result<ContainerOutput> ParseContainerLog(std::string_view log);

}  // namespace railhead::testing
