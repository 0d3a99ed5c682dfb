// The report of `railctl preflight`: is this node fit to join?
//
// Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deviceplugin/tools/doctor/report.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "deviceplugin/tools/rdma_test/report.h"
#include "netns/json/record.h"

namespace railhead::preflight {

// In the order of severity.
enum class Fitness : std::uint8_t {
  kSkipped,  // by the command line
  kFit,
  kUnknown,  // it could not be checked
  kUnfit,
};

struct Finding {
  std::string check;
  Fitness fitness = Fitness::kUnknown;
  std::vector<std::string> details;  // the check's observations
  std::string fix;                   // what to do; "": nothing

  bool operator==(const Finding&) const = default;

  static void List(auto& f) {
    f("check", &Finding::check);
    f("fitness", &Finding::fitness);
    f("details", &Finding::details);
    f("fix", &Finding::fix, kSparseField);
  }
};

struct Report {
  std::string node;
  std::vector<Finding> findings;  // in the order of the checks

  // The worst fitness; kUnknown without a check.
  [[nodiscard]] Fitness Verdict() const;

  static void List(auto& f) {
    f("node", &Report::node);
    f.Output("fitness", &Report::Verdict);
    f("checks", &Report::findings);
  }
};

// The verdict comes last, where readers expect it.
std::string ReportAsText(const Report& report);

}  // namespace railhead::preflight

template <>
struct railhead::Names<railhead::preflight::Fitness> {
  using Fitness = preflight::Fitness;
  static constexpr std::array kAll = {
      std::pair{"skipped", Fitness::kSkipped}, std::pair{"fit", Fitness::kFit},
      std::pair{"unknown", Fitness::kUnknown}, std::pair{"unfit", Fitness::kUnfit}};
};
