// What is common to the faults of a matrix: few sentences for many pairs that do not reach each other.
//
// On each rail: is it the whole rail; else which nodes have a fault with all others; else, between which two
// sets of nodes, the largest first, until every bad pair has its place. Finding the fewest such sets is hard
// (a cover by bicliques); taking the largest that can be grown comes near. What is the same on several rails
// is said once. Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "deviceplugin/tools/reach_view/reach_matrix.h"

namespace railhead::reach_view {

struct ReachFault {
  enum class Kind : std::uint8_t {
    kRail,     // no pair of `nodes` is well
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
  bool all_nodes = false;                                // of kGateway: all that have one

  bool operator==(const ReachFault&) const = default;

  static void List(auto& f) {
    f("kind", &ReachFault::kind);
    f("rails", &ReachFault::rails);
    f("nodes", &ReachFault::nodes);
    f.Shown("text", [](const auto& fault) { return TextOf(fault); });
    f("others", &ReachFault::others, kSparseField);
    f.Shown(
        "pairs",
        [](const ReachFault& fault) {
          std::map<std::string, std::size_t> counts;
          for (const auto& [state, count] : fault.pairs) counts.emplace(WordOf(state), count);
          return counts;
        },
        kSparseField);
  }
};

std::vector<ReachFault> ExplainFaults(const ReachMatrix& matrix);

// "rail5: gpu-017 reaches nobody (silent 78)"
std::string TextOf(const ReachFault& fault);

// A matrix for terminals: what is common to its faults, then who reaches whom.
//
// Marks tell it without colours. Nodes that are alike share a row and a column, rails that are alike a
// matrix. Threads: pure function.

struct ReachTextOptions {
  bool every_node = false;  // rows of their own for all
  bool colours = false;
};

std::string ReachText(const ReachMatrix& matrix, const std::vector<ReachFault>& faults,
                      const ReachTextOptions& options);

}  // namespace railhead::reach_view

template <>
struct railhead::Names<railhead::reach_view::ReachFault::Kind> {
  using Kind = reach_view::ReachFault::Kind;
  static constexpr std::array kAll = {std::pair{"rail", Kind::kRail}, std::pair{"node", Kind::kNode},
                                      std::pair{"between", Kind::kBetween},
                                      std::pair{"gateway", Kind::kGateway}};
};
