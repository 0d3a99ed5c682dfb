// ReachabilityMatrix: which node reaches which on each rail, from the reports of many nodes.
//
// A cell is a mark: the state that the row's node reports of the column's node.
// Threads: values and pure functions. Errors of Add(): kInvalid.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/reachability_report.h"
#include "netns/base/result.h"

namespace railhead::reachability_view {

inline constexpr char kMarkNotReported = '_';  // no report of the node, or the report lacks the other node
inline constexpr char kMarkSelf = '-';

// One of "?.~/m<X".
char MarkOf(reachability::PeerState state);
// nullopt for a mark that is not a state.
std::optional<reachability::PeerState> StateOfMark(char mark);
bool IsFault(char mark);
// "reachable", "not reported" and so on.
std::string_view MeaningOf(char mark);

struct RailMatrix {
  std::string rail;
  std::vector<std::string> rows;             // by node: a mark for each node
  std::vector<std::size_t> without_gateway;  // nodes that get no answer from it
  std::vector<std::size_t> asking_gateway;   // nodes that have a gateway

  static void List(auto& f) {
    f("rail", &RailMatrix::rail);
    f("rows", &RailMatrix::rows);
  }
};

struct ReachabilityMatrix {
  std::vector<std::string> nodes;  // naturally sorted
  std::vector<bool> reported;      // by node
  std::vector<RailMatrix> rails;   // in the order in which reports name them
};

class ReachabilityMatrixBuilder {
 public:
  // kInvalid for a node that was added before.
  Result<void> Add(const reachability::ReachabilityReport& report);
  [[nodiscard]] ReachabilityMatrix Build() const;

 private:
  struct Cell {
    std::size_t from = 0;
    std::size_t to = 0;
    char mark = kMarkNotReported;
  };
  struct Rail {
    std::string name;
    std::vector<Cell> cells;
    std::vector<std::pair<std::size_t, bool>> gateways;  // of a node: whether it answers
  };
  std::size_t NumberOf(const std::string& node);
  Rail& FindOrAddRail(const std::string& name);

  std::map<std::string, std::size_t> nodes_;
  std::set<std::size_t> reported_;
  std::vector<Rail> rails_;
};

// Groups of nodes with equal rows and columns, which share one row. Sorted by their first node.
std::vector<std::vector<std::size_t>> AlikeNodes(const RailMatrix& rail);

}  // namespace railhead::reachability_view
