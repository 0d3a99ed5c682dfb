// YAML as JSON text, for the kinds of YAML that are read here: kubeconfig files and Kubernetes' objects.
// Scalars other than true, false and null stay text, also numbers. JSON is YAML, too. Threads: pure
// functions. Errors: kMalformed, with `what` and the line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

Result<std::string> YamlToJson(const std::string& yaml, const std::string& what);

// The documents of a stream, between lines of "---".
Result<std::vector<std::string>> YamlDocumentsToJson(const std::string& yaml, const std::string& what);

// JSON as YAML of many lines. A string stays a string for every reader. YAML 1.1 takes 0:43, no and 1e3 for
// something else, so all but plain words are in quotes. Bytes that are not UTF-8 are replaced.
std::string JsonToYaml(const nlohmann::ordered_json& json);

}  // namespace railhead
