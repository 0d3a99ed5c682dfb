// What each check of `railctl precheck` makes of what was read.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/reachability/reach_report.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/rdma_test/report.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::precheck {

// What `railctl precheck` found: is this node fit to join?
//
// Threads: values and pure functions.

// In the order of severity.
enum class Fitness : std::uint8_t {
  kSkipped,  // by the command line
  kFit,
  kUnknown,  // it could not be judged
  kUnfit,
};

struct Finding {
  std::string check;
  Fitness fitness = Fitness::kUnknown;
  std::vector<std::string> details;  // what was seen
  std::string fix;                   // what to do about it; "" where nothing is to be done

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

  // The worst; kUnknown when nothing was checked.
  [[nodiscard]] Fitness Verdict() const;

  static void List(auto& f) {
    f("node", &Report::node);
    f.Shown("fitness", &Report::Verdict);
    f("checks", &Report::findings);
  }
};

// The verdict comes last, where people look.
std::string ReportAsText(const Report& report);

// As with `railctl doctor --strict`: warnings count. What doctor skips, it does for a reason, and is well.
Finding JudgeDoctor(const doctor::Report& report);

// nullopt: railheadd has written none. What is drained and has no other trouble is well here: see
// JudgeDrains.
Finding JudgeHealth(const Result<std::optional<health::HealthState>>& state);

// By itself, so that a rail can be proved to be well before it is returned.
Finding JudgeDrains(const Result<std::vector<health::Drain>>& drains);

// A rail's PF on this node, and whether it has carrier.
struct RailPort {
  std::string rail;
  std::string pf;               // its network device; "": the node has no PF for the rail
  std::optional<bool> carrier;  // nullopt: its network device is not here; a pod may have it

  bool operator==(const RailPort&) const = default;
};

// In the fabric's order. An error: there is no fabric, or it is wrong.
Finding JudgeRails(const Result<std::vector<RailPort>>& rails);

Finding JudgeCabling(const Result<std::optional<lldp::LeafReport>>& report,
                     std::chrono::system_clock::time_point now);

// What railheadd reaches by probing. nullopt: it does not probe, and nothing is said. A peer that is not
// reached may be at fault itself: the node is when it reaches less than half of them.
Finding JudgeReach(const Result<std::optional<reachability::ReachReport>>& report,
                   std::chrono::system_clock::time_point now);

// An error: no test could be begun. Slower than min_gbit (Gbit/s of payload) is unfit; 0: no speed is.
Finding JudgeRdma(const Result<std::vector<rdma_test::TestRecord>>& records, double min_gbit = 0);

}  // namespace railhead::precheck

template <>
struct railhead::Names<railhead::precheck::Fitness> {
  using Fitness = precheck::Fitness;
  static constexpr std::array kAll = {
      std::pair{"skipped", Fitness::kSkipped}, std::pair{"fit", Fitness::kFit},
      std::pair{"unknown", Fitness::kUnknown}, std::pair{"unfit", Fitness::kUnfit}};
};
