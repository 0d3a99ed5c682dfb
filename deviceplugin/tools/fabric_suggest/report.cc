#include "deviceplugin/tools/fabric_suggest/report.h"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

#include "netns/base/text.h"
#include "netns/json/json_objects.h"

namespace railhead::fabric_suggest {
namespace {

// Of a report of a thousand nodes; one node has some kilobytes.
constexpr std::size_t kMaxReport = std::size_t{32} << 20;

// Errors begin with the name of the text.
void AddUnread(const std::string& what, const Error& error, Gathered* all) {
  std::string text = Describe(error);
  if (text.starts_with(what + ": ")) text.erase(0, what.size() + 2);
  all->unread.push_back({what, std::move(text)});
}

void AddObservation(NodeObservation observation, const std::string& what, Gathered* all) {
  const auto known = std::ranges::find(all->observations, observation.node, &NodeObservation::node);
  if (known == all->observations.end()) {
    all->observations.push_back(std::move(observation));
    return;
  }
  all->unread.push_back(
      {what, "it has a second observation of node " + observation.node + ": the later one of both counts"});
  if (known->time < observation.time) *known = std::move(observation);
}

// How many incomplete reports of a text are survived: what follows is read again after each.
constexpr int kMostResumed = 50;

void Gather(std::istream& in, const std::string& what, int resumed, Gathered* all);

// One report; false: it cannot be read. An incomplete one may have swallowed those after it, each of which
// begins a line.
bool AddReport(const std::string& text, const std::string& what, int resumed, Gathered* all) {
  auto report = ParseRecord<SuggestReport>(text, what, UnknownFields::kPassOver, kMaxReport);
  if (!report) {
    AddUnread(what, report.error(), all);
    const auto next = text.find("\n{");
    if (next == std::string::npos || resumed == kMostResumed) return false;
    std::istringstream others(text.substr(next + 1));
    Gather(others, what, resumed + 1, all);
    return true;
  }
  if (report->observations.empty()) all->unread.push_back({what, "it has no observation of a node"});
  for (NodeObservation& one : report->observations) AddObservation(std::move(one), what, all);
  return true;
}

void Gather(std::istream& in, const std::string& what, int resumed, Gathered* all) {
  JsonObjects objects(in, what, kMaxReport);
  bool good = true;
  for (;;) {
    const auto text = objects.Next();
    if (!text) return AddUnread(what, text.error(), all);
    if (text->empty()) break;
    // Lines that follow an unread report belong to it.
    if (good || text->starts_with('{')) good = AddReport(*text, objects.NameOfLast(), resumed, all);
  }
  if (objects.count() == 0) all->unread.push_back({what, "it is empty"});
}

}  // namespace

void GatherObservations(std::istream& in, const std::string& what, Gathered* all) {
  Gather(in, what, 0, all);
}

std::string RemarksOf(const SuggestReport& report) {
  std::string text;
  for (const Unread& one : report.unread) text += "unread: " + one.file + ": " + one.error + "\n";
  for (const NodeObservation& one : report.observations) {
    for (const std::string& note : one.notes) text += "note: " + one.node + ": " + note + "\n";
  }
  for (const std::string& line : LinesOf(report.guesses)) text += "guess: " + line + "\n";
  for (const std::string& line : LinesOf(report.contradictions)) text += "contradiction: " + line + "\n";
  return text;
}

}  // namespace railhead::fabric_suggest
