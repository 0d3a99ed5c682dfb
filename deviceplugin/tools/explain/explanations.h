// Explanations: what a name of Railhead means, what to do, and which page has more.
//
// The texts are those of the pages of docs/ that are part of the program, and of the code (doctor checks).
// So nothing but the program is needed, and no text stands twice. A test holds the names against the code and
// the manifests. Ownership: values. Threads: pure functions. Errors: kNotFound for a name that nothing has.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::explain {

enum class NameKind : std::uint8_t {
  kAlert,
  kCniError,
  kCondition,
  kConditionReason,
  kDoctorCheck,
  kEvent,
  kExitStatus,
  kHealthRule,
  kMetric,
  kTaint,
};

struct Explanation {
  NameKind kind = NameKind::kAlert;
  std::string name;
  std::string what;
  std::vector<std::string> details;  // "severity: warning"
  std::vector<std::string> todo;
  std::string page;  // "docs/reference/runbooks.md#railheaddown"

  static void List(auto& f) {
    f("kind", &Explanation::kind, {.column = "KIND"});
    f("name", &Explanation::name, {.column = "NAME"});
    f("what", &Explanation::what, {.column = "WHAT", .wide = kWide});
    f("details", &Explanation::details);
    f("todo", &Explanation::todo);
    f("page", &Explanation::page);
  }
};

// By kind, in the order of their pages.
std::vector<Explanation> AllExplanations();

// The explanations of `name`, whatever the case of its letters. A metric's name may be that of
// one of its series.
Result<std::vector<Explanation>> Explain(const std::string& name);

}  // namespace railhead::explain

template <>
struct railhead::Names<railhead::explain::NameKind> {
  using enum explain::NameKind;
  static constexpr std::array kAll = {std::pair{"alert", kAlert},
                                      std::pair{"CNI error", kCniError},
                                      std::pair{"condition", kCondition},
                                      std::pair{"condition reason", kConditionReason},
                                      std::pair{"event", kEvent},
                                      std::pair{"exit status", kExitStatus},
                                      std::pair{"doctor check", kDoctorCheck},
                                      std::pair{"metric", kMetric},
                                      std::pair{"health rule", kHealthRule},
                                      std::pair{"taint", kTaint}};
};
