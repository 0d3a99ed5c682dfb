// Reports of many nodes, as `railctl reachability` gets them.
#include <nlohmann/json.hpp>
#include <sstream>

#include "deviceplugin/tools/reachability_view/reachability_faults.h"
#include "deviceplugin/tools/reachability_view/reachability_matrix.h"
#include "deviceplugin/tools/reachability_view/reachability_report_stream.h"
#include "netns/json/record_io.h"
#include "tests/fuzz/fuzz.h"

namespace railhead {
namespace {

using fuzz::Require;

void CheckFaults(const reachability_view::ReachabilityMatrix& matrix) {
  for (const reachability_view::RailMatrix& rail : matrix.rails) {
    Require(rail.rows.size() == matrix.nodes.size(), "a row for each node");
    for (const std::string& row : rail.rows) Require(row.size() == matrix.nodes.size(), "and square");
    std::size_t shown = 0;
    for (const auto& alike : AlikeNodes(rail)) shown += alike.size();
    Require(shown == matrix.nodes.size(), "each node is in one group");
  }
  for (const reachability_view::ReachabilityFault& fault : ExplainFaults(matrix)) {
    Require(!fault.rails.empty() && !fault.nodes.empty(), "a fault is somewhere");
    Require(fault.kind != reachability_view::ReachabilityFault::Kind::kBetween || !fault.others.empty(),
            "and between two");
    Require(!TextOf(fault).empty(), "and can be told");
  }
}

void CheckRoundTrip(const reachability::ReachabilityReport& report) {
  const std::string text = ToJson(WithoutCommonTimes(report)).dump();
  const auto again = reachability::ParseReachabilityReport(text, "again");
  Require(again.has_value(), "what was read is read again");
  Require(ToJson(WithoutCommonTimes(*again)).dump() == text, "and says the same");
}

void ReadAll(const std::string& text) {
  std::istringstream in(text);
  reachability_view::ReachabilityReportStream stream(in, "input");
  reachability_view::ReachabilityMatrixBuilder matrix;
  while (true) {
    const auto report = stream.Next();
    if (!report) {
      Require(!report.error().message.empty(), "a refusal says why");
      return;
    }
    if (!*report) break;
    CheckRoundTrip(**report);
    if (const auto added = matrix.Add(**report); !added)
      Require(!added.error().message.empty(), "a refusal says why");
  }
  CheckFaults(matrix.Build());
}

}  // namespace
}  // namespace railhead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::ReadAll(railhead::fuzz::TextOf(data, size));
  return 0;
}
