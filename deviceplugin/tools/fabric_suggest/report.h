// SuggestReport: what `railctl fabric suggest -o json` prints, and what it reads of many nodes.
//
// Only the observations are read again. A report of one node and a report of many have the same shape, so
// groups of nodes can be gathered one after the other. Ownership: `in` is borrowed. Threads: one. Errors:
// none; a report that cannot be read is named, and the others count.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "deviceplugin/tools/fabric_suggest/observe.h"
#include "deviceplugin/tools/fabric_suggest/suggest.h"
#include "netns/base/result.h"
#include "netns/json/record_io.h"

namespace railhead::fabric_suggest {

// Something that was to be read, and does not count.
struct Unread {
  std::string file;  // with the number of the report in it: "gpu.json#1"
  std::string error;

  bool operator==(const Unread&) const = default;

  static void List(auto& f) {
    f("file", &Unread::file);
    f("error", &Unread::error);
  }
};

struct Gathered {
  std::vector<NodeObservation> observations;  // one of each node
  std::vector<Unread> unread;
};

struct SuggestReport {
  std::vector<NodeObservation> observations;
  std::vector<Unread> unread;
  std::string fabric;  // as JSON; "": no PF can carry a rail
  std::vector<Guess> guesses;
  std::vector<Contradiction> contradictions;

  static void List(auto& f) {
    using Report = SuggestReport;
    f.Version(1, "it is what `railctl fabric suggest -o json` prints");
    f("observations", &Report::observations, kPresentField);
    f.Output("unread", [](const Report& report) { return report.unread; });
    f.Form("fabric", record::RawForm<&Report::fabric>{});
    f.Output("guesses", [](const Report& report) { return report.guesses; });
    f.Output("contradictions", [](const Report& report) { return report.contradictions; });
  }
};

// Adds the observations of the reports in `in`, which stand one after the other. `what` names it in errors.
// Of two observations of one node the later counts.
void GatherObservations(std::istream& in, const std::string& what, Gathered* all);

// For standard error: a line for each unread report, note, guess and contradiction.
std::string RemarksOf(const SuggestReport& report);

}  // namespace railhead::fabric_suggest
