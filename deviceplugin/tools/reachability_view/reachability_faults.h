// The common faults of a matrix: few sentences for many pairs that do not reach each other.
//
// Each rail is checked in three steps. Does the whole rail have a fault? Otherwise: which nodes have a fault
// with all others? Otherwise: between which two sets of nodes? The largest sets come first, until every bad
// pair is in one. Finding the fewest sets is hard (a cover by bicliques); growing the largest one each time
// comes near. A fault of several rails is named once.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "deviceplugin/tools/reachability_view/reachability_matrix.h"

namespace railhead::reachability_view {

struct ReachabilityFault {
  enum class Kind : std::uint8_t {
    kRail,     // every pair of `nodes` has a fault
    kNode,     // each of `nodes` has a fault with all others
    kBetween,  // each of `nodes` with each of `others`
    kGateway,  // it does not answer `nodes`
  };
  Kind kind = Kind::kRail;
  std::vector<std::string> rails;
  std::vector<std::string> nodes;
  std::vector<std::string> others;                       // of kBetween
  std::map<reachability::PeerState, std::size_t> pairs;  // (from, to), as `from` says; of all rails
  bool all_rails = false;                                // of a matrix with several
  bool all_nodes = false;                                // of kGateway: every node that has one

  bool operator==(const ReachabilityFault&) const = default;

  static void List(auto& f) {
    f("kind", &ReachabilityFault::kind);
    f("rails", &ReachabilityFault::rails);
    f("nodes", &ReachabilityFault::nodes);
    f.Output("text", [](const auto& fault) { return TextOf(fault); });
    f("others", &ReachabilityFault::others, kSparseField);
    f.Output(
        "pairs",
        [](const ReachabilityFault& fault) {
          std::map<std::string, std::size_t> counts;
          for (const auto& [state, count] : fault.pairs) counts.emplace(WordOf(state), count);
          return counts;
        },
        kSparseField);
  }
};

std::vector<ReachabilityFault> ExplainFaults(const ReachabilityMatrix& matrix);

// "rail5: gpu-017 reaches no other node (silent 78)"
std::string TextOf(const ReachabilityFault& fault);

}  // namespace railhead::reachability_view

template <>
struct railhead::Names<railhead::reachability_view::ReachabilityFault::Kind> {
  using Kind = reachability_view::ReachabilityFault::Kind;
  static constexpr std::array kAll = {std::pair{"rail", Kind::kRail}, std::pair{"node", Kind::kNode},
                                      std::pair{"between", Kind::kBetween},
                                      std::pair{"gateway", Kind::kGateway}};
};
