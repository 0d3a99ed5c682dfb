// Ranks: an order of hosts in which neighbours hang on the same leaves.
//
// Collectives in rings send from each host to the next and from the last to the first, on every rail. Where
// both hang on the same leaf on that rail, the traffic stays in it; else it goes through spines, where flows
// meet. So the order of hosts (of ranks, in a hostfile) decides how many of a ring's edges cross.
//
// The order that is found: hosts with the same leaves on all rails are beside one another, in the order in
// which they were given; these groups are ordered so that as few edges as possible cross, counted over all
// rails: from each group on to the nearest, and from the result pieces are turned round as long as that
// makes it better (2-opt). It is the best possible where hosts of different groups share no leaf, as in
// fabrics of scalable units; in others it may not be. It is never worse than the order given, the first
// host stays the first, and the same input has the same order.
// A rail of which a host does not know the leaf counts as crossing.
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "deviceplugin/leaves/leaf_report.h"

namespace railhead {

struct RankedHost {
  std::string name;
  std::map<std::string, std::string> leaves;  // by rail; a rail whose leaf is not known is not there

  bool operator==(const RankedHost&) const = default;
};

// Of the rails that hang on something known. Where a rail hangs counts, not where it should.
RankedHost RankedHostOf(const LeafReport& report);

// By rail: how many edges of the ring go from one leaf to another. Rails that any of the hosts has.
using CrossedEdges = std::map<std::string, std::size_t>;
CrossedEdges CountCrossed(const std::vector<RankedHost>& ring);
std::size_t SumOf(const CrossedEdges& crossed);
// Edges of a ring of so many hosts: none with one host, and two with two, there and back.
inline std::size_t RingEdges(std::size_t hosts) {
  return hosts < 2 ? 0 : hosts;
}

std::vector<RankedHost> OrderRanks(const std::vector<RankedHost>& hosts);

}  // namespace railhead
