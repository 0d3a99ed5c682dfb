#include "deviceplugin/tools/reachability_view/reachability_faults.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "deviceplugin/services/reachability/folded_names.h"
#include "netns/base/text.h"

namespace railhead::reachability_view {
namespace {

using Numbers = std::vector<std::size_t>;
using FaultKind = ReachabilityFault::Kind;

// One rail's pairs without their direction.
class PairTable {
 public:
  explicit PairTable(const RailMatrix& rail)
      : rail_(rail), bad_(rail.rows.size()), well_(rail.rows.size()), severity_(rail.rows.size()) {
    for (std::size_t a = 0; a < rail.rows.size(); ++a) {
      bad_[a].assign(rail.rows.size(), false);
      for (std::size_t b = 0; b < rail.rows.size(); ++b) {
        if (a == b) continue;
        const char there = rail.rows[a][b];
        const char back = rail.rows[b][a];
        bad_[a][b] = IsFault(there) || IsFault(back);
        for (const char mark : {there, back}) {
          if (IsFault(mark)) severity_[a] += static_cast<std::size_t>(*StateOfMark(mark));
        }
        const char well = MarkOf(reachability::PeerState::kReachable);
        if (!bad_[a][b] && (there == well || back == well)) ++well_[a];
      }
    }
  }
  [[nodiscard]] std::size_t size() const { return bad_.size(); }
  [[nodiscard]] std::size_t WellOf(std::size_t a) const { return well_[a]; }
  // Of all its faults together.
  [[nodiscard]] std::size_t SeverityOf(std::size_t a) const { return severity_[a]; }
  [[nodiscard]] Numbers BadOf(std::size_t a) const {
    Numbers found;
    for (std::size_t b = 0; b < size(); ++b) {
      if (bad_[a][b]) found.push_back(b);
    }
    return found;
  }
  // What both say of each other.
  void CountPair(std::size_t a, std::size_t b, std::map<reachability::PeerState, std::size_t>* pairs) const {
    for (const char mark : {rail_.rows[a][b], rail_.rows[b][a]}) {
      if (IsFault(mark)) ++(*pairs)[*StateOfMark(mark)];
    }
  }

 private:
  const RailMatrix& rail_;
  std::vector<std::vector<bool>> bad_;
  std::vector<std::size_t> well_;
  std::vector<std::size_t> severity_;
};

std::vector<std::string> NamesAt(const ReachabilityMatrix& matrix, const Numbers& numbers) {
  std::vector<std::string> names;
  for (const std::size_t number : numbers) names.push_back(matrix.nodes[number]);
  return names;
}

class RailExplainer {
 public:
  RailExplainer(const ReachabilityMatrix& matrix, const RailMatrix& rail)
      : matrix_(matrix), rail_(rail), table_(rail) {}

  std::vector<ReachabilityFault> Explain() {
    for (std::size_t node = 0; node < table_.size(); ++node) open_.push_back(table_.BadOf(node));
    AddGateway();
    if (!AddWholeRail()) {
      AddNodes();
      while (AddBlock()) {
      }
    }
    return std::move(faults_);
  }

 private:
  ReachabilityFault& Add(FaultKind kind, const Numbers& nodes) {
    ReachabilityFault& fault = faults_.emplace_back();
    fault.kind = kind;
    fault.rails = {rail_.rail};
    fault.nodes = NamesAt(matrix_, nodes);
    return fault;
  }

  void AddGateway() {
    if (rail_.without_gateway.empty()) return;
    Add(FaultKind::kGateway, rail_.without_gateway).all_nodes =
        rail_.without_gateway.size() == rail_.asking_gateway.size();
  }

  bool AddWholeRail() {
    Numbers nodes;
    for (std::size_t node = 0; node < table_.size(); ++node) {
      if (table_.WellOf(node) != 0) return false;
      if (!open_[node].empty()) nodes.push_back(node);
    }
    if (nodes.size() < 3) return false;  // of two it is a pair
    ReachabilityFault& fault = Add(FaultKind::kRail, nodes);
    for (const std::size_t a : nodes) {
      for (const std::size_t b : open_[a]) {
        if (a < b) table_.CountPair(a, b, &fault.pairs);
      }
    }
    return true;
  }

  void Close(std::size_t a, std::size_t b) {
    std::erase(open_[a], b);
    std::erase(open_[b], a);
  }

  // Of a silent node and one that loses large packets it is the first that is silent to the other.
  [[nodiscard]] bool IsWorse(std::size_t a, std::size_t b) const {
    return std::pair(open_[a].size(), table_.SeverityOf(a)) >
           std::pair(open_[b].size(), table_.SeverityOf(b));
  }

  // Those that are well with nobody, the one with most faults first: the faults that the others have with it
  // are not theirs.
  void AddNodes() {
    std::map<std::set<reachability::PeerState>,
             std::pair<Numbers, std::map<reachability::PeerState, std::size_t>>>
        alike;
    while (true) {
      std::optional<std::size_t> worst;
      for (std::size_t node = 0; node < table_.size(); ++node) {
        const bool with_all = table_.WellOf(node) == 0 && open_[node].size() >= 2;
        if (with_all && (!worst || IsWorse(node, *worst))) worst = node;
      }
      if (!worst) break;
      std::map<reachability::PeerState, std::size_t> pairs;
      const Numbers others = open_[*worst];
      for (const std::size_t other : others) {
        table_.CountPair(*worst, other, &pairs);
        Close(*worst, other);
      }
      std::set<reachability::PeerState> states;
      for (const auto& [state, count] : pairs) states.insert(state);
      auto& [nodes, sum] = alike[states];
      nodes.push_back(*worst);
      for (const auto& [state, count] : pairs) sum[state] += count;
    }
    for (auto& [states, found] : alike) {
      std::ranges::sort(found.first);
      Add(FaultKind::kNode, found.first).pairs = found.second;
    }
  }

  // Two sets without a common node, each of the one bad with each of the other: grown from the node that has
  // most faults left. False: nothing is left.
  bool AddBlock() {
    const auto seed = std::ranges::max_element(
        open_, [](const Numbers& a, const Numbers& b) { return a.size() < b.size(); });
    if (seed == open_.end() || seed->empty()) return false;
    Numbers some = {static_cast<std::size_t>(seed - open_.begin())};
    Numbers others = *seed;
    for (const std::size_t candidate : ByOverlap(others)) {
      if (candidate == some.front() || std::binary_search(others.begin(), others.end(), candidate)) continue;
      const Numbers common = BadAmong(candidate, others);
      if ((some.size() + 1) * common.size() <= some.size() * others.size()) continue;
      some.push_back(candidate);
      others = common;
    }
    std::ranges::sort(some);
    if (others.front() < some.front()) std::swap(some, others);
    ReachabilityFault& fault = Add(FaultKind::kBetween, some);
    fault.others = NamesAt(matrix_, others);
    for (const std::size_t a : some) {
      for (const std::size_t b : others) {
        table_.CountPair(a, b, &fault.pairs);
        Close(a, b);
      }
    }
    return true;
  }

  // Of `among` those that are bad with `node`, and not yet explained.
  [[nodiscard]] Numbers BadAmong(std::size_t node, const Numbers& among) const {
    Numbers found;
    std::set_intersection(open_[node].begin(), open_[node].end(), among.begin(), among.end(),
                          std::back_inserter(found));
    return found;
  }

  // Nodes that are bad with some of `others`, those with most first.
  [[nodiscard]] Numbers ByOverlap(const Numbers& others) const {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    for (std::size_t node = 0; node < open_.size(); ++node) {
      const std::size_t overlap = open_[node].empty() ? 0 : BadAmong(node, others).size();
      if (overlap != 0) found.emplace_back(overlap, node);
    }
    std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
    Numbers nodes;
    for (const auto& [overlap, node] : found) nodes.push_back(node);
    return nodes;
  }

  const ReachabilityMatrix& matrix_;
  const RailMatrix& rail_;
  const PairTable table_;
  std::vector<Numbers> open_;  // by node: with whom it has a fault that is not explained; sorted
  std::vector<ReachabilityFault> faults_;
};

bool AreTheSame(const ReachabilityFault& a, const ReachabilityFault& b) {
  const auto states = [](const ReachabilityFault& fault) {
    std::vector<reachability::PeerState> found;
    for (const auto& [state, count] : fault.pairs) found.push_back(state);
    return found;
  };
  return a.kind == b.kind && a.nodes == b.nodes && a.others == b.others && a.all_nodes == b.all_nodes &&
         states(a) == states(b);
}

std::string CountedStates(const ReachabilityFault& fault) {
  std::vector<std::string> parts;
  const std::map<reachability::PeerState, std::size_t, std::greater<>> worst_first(fault.pairs.begin(),
                                                                                   fault.pairs.end());
  parts.reserve(worst_first.size());
  for (const auto& [state, count] : worst_first)
    parts.push_back(std::string(WordOf(state)) + " " + std::to_string(count));
  return Join(parts, ", ");
}

// Nothing gets through, in one direction at least.
bool IsCut(const ReachabilityFault& fault) {
  return std::ranges::all_of(fault.pairs,
                             [](const auto& pair) { return pair.first >= reachability::PeerState::kOneWay; });
}

}  // namespace

std::vector<ReachabilityFault> ExplainFaults(const ReachabilityMatrix& matrix) {
  std::vector<ReachabilityFault> faults;
  for (const RailMatrix& rail : matrix.rails) {
    for (ReachabilityFault& fault : RailExplainer(matrix, rail).Explain()) {
      const auto same =
          std::ranges::find_if(faults, [&](const ReachabilityFault& one) { return AreTheSame(one, fault); });
      if (same == faults.end()) {
        faults.push_back(std::move(fault));
        continue;
      }
      same->rails.push_back(rail.rail);
      for (const auto& [state, count] : fault.pairs) same->pairs[state] += count;
    }
  }
  for (ReachabilityFault& fault : faults)
    fault.all_rails = matrix.rails.size() > 1 && fault.rails.size() == matrix.rails.size();
  return faults;
}

std::string TextOf(const ReachabilityFault& fault) {
  const std::string where = (fault.all_rails ? "all rails" : reachability::FoldedNames(fault.rails)) + ": ";
  const std::string nodes = reachability::FoldedNames(fault.nodes);
  const bool one = fault.nodes.size() == 1;
  const std::string states = " (" + CountedStates(fault) + ")";
  switch (fault.kind) {
    case FaultKind::kRail:
      return where + (IsCut(fault) ? "no node reaches another: " : "every pair has a fault: ") + nodes +
             states;
    case FaultKind::kNode:
      if (!IsCut(fault))
        return where + nodes + (one ? " has" : " have") + " a fault with all others" + states;
      return where + nodes + (one ? " reaches no other node" : " reach no other node") + states;
    case FaultKind::kBetween:
      return where + "between " + nodes + " and " + reachability::FoldedNames(fault.others) + states;
    case FaultKind::kGateway:
      return where + "the gateway answers " + (fault.all_nodes ? "no node: " : "all but ") + nodes;
  }
  return {};
}

}  // namespace railhead::reachability_view
