#include "deviceplugin/tools/reachability_view/reachability_text.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "deviceplugin/services/reachability/folded_names.h"

namespace railhead::reachability_view {
namespace {

using Groups = std::vector<std::vector<std::size_t>>;

// Background colours of terminals (ECMA-48), from green to red.
std::string_view ColourOf(char mark) {
  switch (mark) {
    case '.':
      return "\x1b[30;42m";
    case '~':
    case '/':
      return "\x1b[30;43m";
    case 'm':
    case 'r':
      return "\x1b[30;45m";
    case '<':
    case 'X':
      return "\x1b[97;41m";
    default:
      return "";
  }
}

// Neighbours of one colour change it once.
std::string Coloured(const std::string& marks) {
  std::string text;
  std::string_view now;
  for (const char mark : marks) {
    const std::string_view colour = ColourOf(mark);
    if (colour != now) text += colour.empty() ? "\x1b[0m" : colour;
    now = colour;
    text += mark;
  }
  return now.empty() ? text : text + "\x1b[0m";
}

Groups EachAlone(std::size_t count) {
  Groups groups(count);
  for (std::size_t node = 0; node < count; ++node) groups[node] = {node};
  return groups;
}

std::string NameOfGroup(const ReachabilityMatrix& matrix, const std::vector<std::size_t>& group) {
  std::vector<std::string> names;
  names.reserve(group.size());
  for (const std::size_t node : group) names.push_back(matrix.nodes[node]);
  const std::string folded = reachability::FoldedNames(names);
  return group.size() == 1 ? folded : folded + " (" + std::to_string(group.size()) + ")";
}

char MarkBetween(const RailMatrix& rail, const std::vector<std::size_t>& from,
                 const std::vector<std::size_t>& to) {
  if (from.front() != to.front()) return rail.rows[from.front()][to.front()];
  return from.size() == 1 ? kMarkSelf : rail.rows[from[0]][from[1]];
}

// Numbers of the columns, one digit below the other.
std::string HeadOf(std::size_t count, std::size_t indent) {
  const std::size_t digits = std::to_string(count).size();
  std::string head;
  for (std::size_t digit = 0; digit < digits; ++digit) {
    head.append(indent, ' ');
    for (std::size_t column = 1; column <= count; ++column) {
      const std::string number = std::to_string(column);
      const std::size_t blank = digits - number.size();
      head += digit < blank ? ' ' : number[digit - blank];
    }
    head += '\n';
  }
  return head;
}

std::string MatrixText(const ReachabilityMatrix& matrix, const RailMatrix& rail, const Groups& groups,
                       bool colours, std::set<char>* used) {
  std::vector<std::string> names;
  std::size_t widest = 0;
  for (std::size_t row = 0; row < groups.size(); ++row) {
    const std::string number = std::to_string(row + 1);
    const std::size_t blank = std::to_string(groups.size()).size() - number.size();
    names.push_back("  " + std::string(blank, ' ') + number + " " + NameOfGroup(matrix, groups[row]));
    widest = std::max(widest, names.back().size());
  }
  std::string text = HeadOf(groups.size(), widest + 2);
  for (std::size_t row = 0; row < groups.size(); ++row) {
    std::string marks;
    for (const auto& column : groups) marks += MarkBetween(rail, groups[row], column);
    used->insert(marks.begin(), marks.end());
    text += names[row] + std::string(widest + 2 - names[row].size(), ' ');
    text += (colours ? Coloured(marks) : marks) + "\n";
  }
  return text;
}

// Rails whose matrices are the same, with the first of them.
std::vector<std::pair<const RailMatrix*, std::vector<std::string>>> AlikeRails(
    const ReachabilityMatrix& matrix) {
  std::vector<std::pair<const RailMatrix*, std::vector<std::string>>> alike;
  for (const RailMatrix& rail : matrix.rails) {
    const auto same =
        std::ranges::find_if(alike, [&](const auto& one) { return one.first->rows == rail.rows; });
    if (same == alike.end()) {
      alike.push_back({&rail, {rail.rail}});
    } else {
      same->second.push_back(rail.rail);
    }
  }
  return alike;
}

bool IsOnly(const RailMatrix& rail, const std::vector<std::size_t>& nodes, char mark) {
  return nodes.size() > 1 && MarkBetween(rail, nodes, nodes) == mark;
}

std::string LegendOf(const std::set<char>& used, bool colours) {
  std::string legend;
  for (const char mark : std::string(".?~/m<X_")) {
    if (!used.contains(mark)) continue;
    const std::string shown(1, mark);
    legend += "  " + (colours ? Coloured(shown) : shown) + " " + std::string(MeaningOf(mark));
  }
  return legend.empty() ? "" : "\na row says of a column:" + legend + "\n";
}

std::string WithoutReport(const ReachabilityMatrix& matrix) {
  std::vector<std::string> names;
  for (std::size_t node = 0; node < matrix.nodes.size(); ++node) {
    if (!matrix.reported[node]) names.push_back(matrix.nodes[node]);
  }
  return names.empty() ? "" : "no report of " + reachability::FoldedNames(names) + "\n";
}

}  // namespace

std::string ReachabilityText(const ReachabilityMatrix& matrix, const std::vector<ReachabilityFault>& faults,
                             const ReachabilityTextOptions& options) {
  std::string text;
  for (const ReachabilityFault& fault : faults) text += TextOf(fault) + "\n";
  text += WithoutReport(matrix);
  std::set<char> used;
  for (const auto& [rail, names] : AlikeRails(matrix)) {
    const Groups groups = options.every_node ? EachAlone(matrix.nodes.size()) : AlikeNodes(*rail);
    if (!text.empty()) text += "\n";
    text += reachability::FoldedNames(names) + ": " + std::to_string(matrix.nodes.size()) + " nodes";
    if (groups.size() == 1 && IsOnly(*rail, groups.front(), MarkOf(reachability::PeerState::kReachable))) {
      text += ", all reach all\n";
      continue;
    }
    text += "\n" + MatrixText(matrix, *rail, groups, options.colours, &used);
  }
  return text + LegendOf(used, options.colours);
}

}  // namespace railhead::reachability_view
