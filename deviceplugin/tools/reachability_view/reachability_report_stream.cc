#include "deviceplugin/tools/reachability_view/reachability_report_stream.h"

namespace railhead::reachability_view {

Result<std::optional<reachability::ReachabilityReport>> ReachabilityReportStream::Next() {
  const std::string text = RH_TRY(objects_.Next());
  if (text.empty()) return std::nullopt;
  return RH_TRY(reachability::ParseReachabilityReport(text, objects_.NameOfLast()));
}

}  // namespace railhead::reachability_view
