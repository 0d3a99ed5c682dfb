// The reports of many nodes, one after the other, as `railctl reachability -o json` prints them.
//
// Only one report at a time is in memory: those of a thousand nodes together need a gigabyte.
// Ownership: `in` is borrowed. Threads: one. Errors of Next(): those of ParseReachabilityReport, with the
// number of the report; those of JsonObjects.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <utility>

#include "deviceplugin/services/reachability/reachability_report.h"
#include "netns/base/result.h"
#include "netns/json/json_objects.h"

namespace railhead::reachability_view {

class ReachabilityReportStream {
 public:
  // `what` names the text in errors.
  ReachabilityReportStream(std::istream& in, std::string what)
      : objects_(in, std::move(what), reachability::kMaxReachabilityReport) {}

  // nullopt: the stream has ended.
  Result<std::optional<reachability::ReachabilityReport>> Next();

 private:
  JsonObjects objects_;
};

}  // namespace railhead::reachability_view
