// ReachMatrix: who reaches whom on each rail, out of the reports of many nodes.
//
// A cell is a mark: what the node of its row says of the node of its column.
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

#include "deviceplugin/services/reachability/reach_report.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead::reach_view {

inline constexpr char kMarkNotSaid = '_';  // no report of it, or none that knows the other one
inline constexpr char kMarkSelf = '-';

// One of "?.~/m<X".
char MarkOf(reachability::PeerState state);
// Of marks that are no states: nullopt.
std::optional<reachability::PeerState> StateOfMark(char mark);
bool IsFault(char mark);
// "reachable", "not said" and so on.
std::string_view MeaningOf(char mark);

struct RailMatrix {
  std::string rail;
  std::vector<std::string> rows;             // by node: a mark for each node
  std::vector<std::size_t> without_gateway;  // nodes whom it does not answer
  std::vector<std::size_t> asking_gateway;   // nodes that have one

  static void List(auto& f) {
    f("rail", &RailMatrix::rail);
    f("rows", &RailMatrix::rows);
  }
};

struct ReachMatrix {
  std::vector<std::string> nodes;  // naturally sorted
  std::vector<bool> reported;      // by node
  std::vector<RailMatrix> rails;   // in the order in which reports name them
};

class ReachMatrixBuilder {
 public:
  // Of a node that was there already: kInvalid.
  Result<void> Add(const reachability::ReachReport& report);
  [[nodiscard]] ReachMatrix Build() const;

 private:
  struct Said {
    std::size_t from = 0;
    std::size_t to = 0;
    char mark = kMarkNotSaid;
  };
  struct Rail {
    std::string name;
    std::vector<Said> said;
    std::vector<std::pair<std::size_t, bool>> gateways;  // of a node: whether it answers
  };
  std::size_t NumberOf(const std::string& node);
  Rail& RailCalled(const std::string& name);

  std::map<std::string, std::size_t> nodes_;
  std::set<std::size_t> reported_;
  std::vector<Rail> rails_;
};

// Nodes that could change places and nobody would see it in the matrix: they are shown as one. By their
// first node; within a group all cells are the same.
std::vector<std::vector<std::size_t>> AlikeNodes(const RailMatrix& rail);

// The reports of many nodes, one after the other: what `railctl net -o json` printed on each, in a row, or
// each over many lines.
//
// One at a time is in memory: those of a thousand nodes together are a gigabyte.
// Ownership: `in` is borrowed. Threads: one. Errors of Next(): those of ParseReachReport, with which of them
// it is; those of JsonObjects.

class ReachReportStream {
 public:
  // `what` names the text in errors.
  ReachReportStream(std::istream& in, std::string what)
      : objects_(in, std::move(what), reachability::kMaxReachReport) {}

  // nullopt: that was all.
  Result<std::optional<reachability::ReachReport>> Next();

 private:
  JsonObjects objects_;
};

}  // namespace railhead::reach_view
