// Reports of many nodes, as `railctl net` gets them.
#include <nlohmann/json.hpp>
#include <sstream>

#include "deviceplugin/tools/reach_view/reach_faults.h"
#include "deviceplugin/tools/reach_view/reach_matrix.h"
#include "netns/json/record_io.h"
#include "tests/fuzz/fuzz.h"

namespace railhead {
namespace {

using fuzz::Require;

void CheckFaults(const reach_view::ReachMatrix& matrix) {
  for (const reach_view::RailMatrix& rail : matrix.rails) {
    Require(rail.rows.size() == matrix.nodes.size(), "a row for each node");
    for (const std::string& row : rail.rows) Require(row.size() == matrix.nodes.size(), "and square");
    std::size_t shown = 0;
    for (const auto& alike : AlikeNodes(rail)) shown += alike.size();
    Require(shown == matrix.nodes.size(), "each node is in one group");
  }
  for (const reach_view::ReachFault& fault : ExplainFaults(matrix)) {
    Require(!fault.rails.empty() && !fault.nodes.empty(), "a fault is somewhere");
    Require(fault.kind != reach_view::ReachFault::Kind::kBetween || !fault.others.empty(), "and between two");
    Require(!TextOf(fault).empty(), "and can be told");
  }
}

void CheckRoundTrip(const reachability::ReachReport& report) {
  const std::string text = ToJson(WithoutCommonTimes(report)).dump();
  const auto again = reachability::ParseReachReport(text, "again");
  Require(again.has_value(), "what was read is read again");
  Require(ToJson(WithoutCommonTimes(*again)).dump() == text, "and says the same");
}

void ReadAll(const std::string& text) {
  std::istringstream in(text);
  reach_view::ReachReportStream stream(in, "input");
  reach_view::ReachMatrixBuilder matrix;
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
