// What `railctl precheck` found: is this node fit to join?
//
// Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace railhead::precheck {

// In the order of severity.
enum class Fitness : std::uint8_t {
  kSkipped,  // by the command line
  kFit,
  kUnknown,  // it could not be judged
  kUnfit,
};

// "skipped", "fit", "unknown", "unfit"
std::string_view NameOf(Fitness fitness);

struct Finding {
  std::string check;
  Fitness fitness = Fitness::kUnknown;
  std::vector<std::string> details;  // what was seen
  std::string fix;                   // what to do about it; "" where nothing is to be done

  bool operator==(const Finding&) const = default;
};

struct Report {
  std::string node;
  std::vector<Finding> findings;  // in the order of the checks

  // The worst; kUnknown when nothing was checked.
  [[nodiscard]] Fitness Verdict() const;
};

nlohmann::json ReportAsJson(const Report& report);
// The verdict comes last, where people look.
std::string ReportAsText(const Report& report);

}  // namespace railhead::precheck
