#include "deviceplugin/tools/reach_view/reach_stream.h"

namespace railhead {

Result<std::optional<ReachReport>> ReachReportStream::Next() {
  const std::string text = RH_TRY(objects_.Next());
  if (text.empty()) return std::nullopt;
  return RH_TRY(ParseReachReport(text, objects_.NameOfLast()));
}

}  // namespace railhead
