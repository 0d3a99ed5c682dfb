#include "bench/node_doctor.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "bench/bare_discovery.h"
#include "bench/node_series.h"
#include "bench/process.h"
#include "bench/report.h"

namespace railhead::bench {
namespace {

// Four checks of DCB and the order of RDMA devices ask the kernel, which a tree is not; and nobody has
// listened to its switches, and no kubelet runs there.
constexpr int kNotThere = 7;

// Of the report of a run: that it was the whole work.
Result<void> CheckReport(const std::string& output) {
  const auto report = nlohmann::json::parse(output, nullptr, false);
  const bool whole = report.is_object() && report.contains("counts") &&
                     report["counts"].value("skipped", -1) == kNotThere &&
                     report["counts"].value("failure", -1) == 0;
  if (whole) return {};
  return Fail(ErrorCode::kConflict, "railctl doctor did not find what the made-up node has: " + output);
}

}  // namespace

Result<void> MeasureDoctor(const Root& root, const std::string& program, int rounds, Record* record) {
  const std::vector<std::string> environment = {"RAILHEAD_ROOT=" + root.prefix()};
  const ProcessCall all{program, {"doctor", "--json"}, environment, ""};
  const ProcessCall one{program, {"doctor", "--only", "node.modules"}, environment, ""};
  const ProcessCall none{program, {"doctor", "--list"}, environment, ""};
  for (int round = 0; round <= rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const BareDiscovery read = RH_TRY(ReadBareForDoctor(root));
    const double bare_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const auto whole = RH_TRY(RunProcess(all));
    const auto part = RH_TRY(RunProcess(one));
    const auto idle = RH_TRY(RunProcess(none));
    RH_TRY(CheckReport(whole.output));
    if (round == 0) continue;
    record->Add(kNode, kBareReading, kDoctor, "ms", bare_ms);
    record->Add(kNode, kBareReading, kDoctorFiles, "files", read.files);
    record->Add(kNode, kRailctl, kDoctor, "ms", whole.cost.wall_ms);
    record->Add(kNode, kRailctl, kDoctorOne, "ms", part.cost.wall_ms);
    record->Add(kNode, kRailctl, kDoctorStart, "ms", idle.cost.wall_ms);
  }
  return {};
}

}  // namespace railhead::bench
