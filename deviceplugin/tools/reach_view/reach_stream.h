// The reports of many nodes, one after the other: what `railctl net --json` printed on each, in a row, or
// each over many lines.
//
// One at a time is in memory: those of a thousand nodes together are a gigabyte.
// Ownership: `in` is borrowed. Threads: one. Errors of Next(): those of ParseReachReport, with which of them
// it is; those of JsonObjects.
#pragma once

#include <istream>
#include <optional>
#include <string>

#include "deviceplugin/services/reachability/reach_report.h"
#include "netns/base/result.h"
#include "netns/json/json_objects.h"

namespace railhead {

class ReachReportStream {
 public:
  // `what` names the text in errors.
  ReachReportStream(std::istream& in, std::string what) : objects_(in, std::move(what), kMaxReachReport) {}

  // nullopt: that was all.
  Result<std::optional<ReachReport>> Next();

 private:
  JsonObjects objects_;
};

}  // namespace railhead
