#include "deviceplugin/tools/fabric_suggest/report.h"

#include <cstddef>
#include <utility>

#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::fabric_suggest {
namespace {

// Of a report of a thousand nodes; one node has some kilobytes.
constexpr std::size_t kMaxReport = std::size_t{32} << 20;

}  // namespace

Result<void> GatherObservations(std::istream& in, const std::string& what,
                                std::vector<NodeObservation>* all) {
  JsonObjects objects(in, what, kMaxReport);
  for (;;) {
    const std::string text = RH_TRY(objects.Next());
    if (text.empty()) break;
    auto report =
        RH_TRY(ParseRecord<SuggestReport>(text, objects.NameOfLast(), UnknownFields::kPassOver, kMaxReport));
    for (NodeObservation& one : report.observations) {
      if (Contains(*all, one.node, &NodeObservation::node))
        return Fail(ErrorCode::kInvalid, objects.NameOfLast() + ": two observations are of node " + one.node);
      all->push_back(std::move(one));
    }
  }
  if (in.bad()) return Fail(ErrorCode::kIo, "reading " + what + " failed");
  return {};
}

std::string RemarksOf(const SuggestReport& report) {
  std::string text;
  for (const NodeObservation& one : report.observations) {
    for (const std::string& note : one.notes) text += "note: " + one.node + ": " + note + "\n";
  }
  for (const std::string& line : LinesOf(report.guesses)) text += "guess: " + line + "\n";
  for (const std::string& line : LinesOf(report.contradictions)) text += "contradiction: " + line + "\n";
  return text;
}

}  // namespace railhead::fabric_suggest
