// The leaf reports of many nodes out of files: what `railctl leaves --json` printed on each, one after the
// other in any number of files; each on a line of its own, or over many lines, as it is printed.
// Threads: pure function. Errors: those of ParseLeafReport and JsonObjects, with which of them it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/leaves/leaf_report.h"
#include "netns/base/result.h"

namespace railhead {

// `what` names the text in errors.
Result<std::vector<LeafReport>> ParseLeafReports(std::string_view text, const std::string& what);

}  // namespace railhead
