// YAML as JSON text, for the kinds of YAML that are read here: kubeconfig files and Kubernetes'
// objects. What is neither true, false nor null stays text, also numbers. JSON is YAML, too.
// Threads: pure functions. Errors: kMalformed, with `what` and the line.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

Result<std::string> YamlToJson(const std::string& yaml, const std::string& what);

// The documents of a stream, between lines of "---".
Result<std::vector<std::string>> YamlDocumentsToJson(const std::string& yaml, const std::string& what);

}  // namespace railhead
