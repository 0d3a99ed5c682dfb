// YAML as JSON text, for the one kind of YAML that is read here: kubeconfig files. What is
// neither true, false nor null stays text, also numbers. JSON is YAML, too.
// Threads: pure function. Errors: kMalformed, with `what` and the line.
#pragma once

#include <string>

#include "netns/base/result.h"

namespace railhead {

Result<std::string> YamlToJson(const std::string& yaml, const std::string& what);

}  // namespace railhead
