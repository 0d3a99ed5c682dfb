// Runs checks and prints the results.
// Threads: one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/system/conformance/check.h"

namespace railhead::conformance {

enum class Verdict : std::uint8_t { kPass, kFail, kNotApplicable };

struct Finding {
  std::string id;
  std::string title;
  std::string section;
  Severity severity = Severity::kMust;
  Verdict verdict = Verdict::kPass;
  std::string reason;  // of a failure or why it does not apply
};

// `only`: ids, or their first parts ("del"); empty: all. `seen` gets each finding as soon as it is known.
std::vector<Finding> RunChecks(const Target& target, const std::vector<std::string>& only,
                               const std::function<void(const Finding&)>& seen);

std::string NameOf(Severity severity);
std::string NameOf(Verdict verdict);
std::string LineOf(const Finding& finding);
std::string ListOfChecks();
// How many of each severity passed.
std::string Summary(const Target& target, const std::vector<Finding>& findings);
std::string JsonReport(const Target& target, const std::vector<Finding>& findings);
// Whether no MUST failed and at least one check ran.
bool Conforms(const std::vector<Finding>& findings);

}  // namespace railhead::conformance
