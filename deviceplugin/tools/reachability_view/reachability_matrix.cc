#include "deviceplugin/tools/reachability_view/reachability_matrix.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "deviceplugin/services/reachability/folded_names.h"

namespace railhead::reachability_view {
namespace {

constexpr std::string_view kMarks = "?.~/mr<X";  // in PeerState's order

// But for what is at `a` and at `b`.
bool AlikeBut(std::string_view x, std::string_view y, std::size_t a, std::size_t b) {
  const std::size_t first = std::min(a, b);
  const std::size_t second = std::max(a, b);
  return x.substr(0, first) == y.substr(0, first) &&
         x.substr(first + 1, second - first - 1) == y.substr(first + 1, second - first - 1) &&
         x.substr(second + 1) == y.substr(second + 1);
}

std::vector<std::string> Transposed(const std::vector<std::string>& rows) {
  std::vector<std::string> columns(rows.size(), std::string(rows.size(), kMarkNotReported));
  for (std::size_t from = 0; from < rows.size(); ++from) {
    for (std::size_t to = 0; to < rows.size(); ++to) columns[to][from] = rows[from][to];
  }
  return columns;
}

}  // namespace

char MarkOf(reachability::PeerState state) {
  return kMarks.at(static_cast<std::size_t>(state));
}

std::optional<reachability::PeerState> StateOfMark(char mark) {
  const std::size_t at = kMarks.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<reachability::PeerState>(at);
}

bool IsFault(char mark) {
  const auto state = StateOfMark(mark);
  return state && *state > reachability::PeerState::kReachable;
}

std::string_view MeaningOf(char mark) {
  if (mark == kMarkSelf) return "itself";
  const auto state = StateOfMark(mark);
  return state ? WordOf(*state) : "not reported";
}

std::size_t ReachabilityMatrixBuilder::NumberOf(const std::string& node) {
  return nodes_.try_emplace(node, nodes_.size()).first->second;
}

ReachabilityMatrixBuilder::Rail& ReachabilityMatrixBuilder::FindOrAddRail(const std::string& name) {
  const auto found = std::ranges::find(rails_, name, &Rail::name);
  if (found != rails_.end()) return *found;
  rails_.push_back({name, {}, {}});
  return rails_.back();
}

Result<void> ReachabilityMatrixBuilder::Add(const reachability::ReachabilityReport& report) {
  const std::size_t from = NumberOf(report.node);
  if (!reported_.insert(from).second)
    return Fail(ErrorCode::kInvalid, "two reports are of node " + report.node);
  for (const reachability::RailReachability& reached : report.rails) {
    Rail& rail = FindOrAddRail(reached.rail);
    for (const reachability::PeerReachability& peer : reached.peers) {
      if (peer.node != report.node) rail.cells.push_back({from, NumberOf(peer.node), MarkOf(peer.state)});
    }
    if (reached.gateway) rail.gateways.emplace_back(from, reached.gateway->answers);
  }
  return {};
}

ReachabilityMatrix ReachabilityMatrixBuilder::Build() const {
  ReachabilityMatrix matrix;
  for (const auto& [node, number] : nodes_) matrix.nodes.push_back(node);
  std::ranges::sort(matrix.nodes, reachability::NaturallyLess);
  std::vector<std::size_t> places(nodes_.size());  // by number
  for (std::size_t place = 0; place < places.size(); ++place) places[nodes_.at(matrix.nodes[place])] = place;
  matrix.reported.assign(places.size(), false);
  for (const std::size_t number : reported_) matrix.reported[places[number]] = true;
  for (const Rail& rail : rails_) {
    RailMatrix& built = matrix.rails.emplace_back();
    built.rail = rail.name;
    built.rows.assign(places.size(), std::string(places.size(), kMarkNotReported));
    for (std::size_t node = 0; node < places.size(); ++node) built.rows[node][node] = kMarkSelf;
    for (const Cell& cell : rail.cells) built.rows[places[cell.from]][places[cell.to]] = cell.mark;
    for (const auto& [number, answers] : rail.gateways) {
      built.asking_gateway.push_back(places[number]);
      if (!answers) built.without_gateway.push_back(places[number]);
    }
    std::ranges::sort(built.asking_gateway);
    std::ranges::sort(built.without_gateway);
  }
  return matrix;
}

std::vector<std::vector<std::size_t>> AlikeNodes(const RailMatrix& rail) {
  const auto& rows = rail.rows;
  const std::vector<std::string> columns = Transposed(rows);
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t node = 0; node < rows.size(); ++node) {
    const auto alike = [&](const std::vector<std::size_t>& group) {
      const std::size_t other = group.front();
      return rows[node][other] == rows[other][node] && AlikeBut(rows[node], rows[other], node, other) &&
             AlikeBut(columns[node], columns[other], node, other);
    };
    const auto found = std::ranges::find_if(groups, alike);
    if (found == groups.end()) {
      groups.push_back({node});
    } else {
      found->push_back(node);
    }
  }
  return groups;
}

}  // namespace railhead::reachability_view
