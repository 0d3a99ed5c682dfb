#include "deviceplugin/leaves/ranks.h"

#include <algorithm>
#include <set>
#include <utility>

namespace railhead {
namespace {

std::set<std::string> RailsOf(const std::vector<RankedHost>& hosts) {
  std::set<std::string> rails;
  for (const RankedHost& host : hosts) {
    for (const auto& [rail, leaf] : host.leaves) rails.insert(rail);
  }
  return rails;
}

// A host's leaves as numbers, in the order of the rails; 0: not known, and no other's.
using Place = std::vector<int>;

int Distance(const Place& a, const Place& b) {
  int crossed = 0;
  for (std::size_t i = 0; i < a.size(); ++i) crossed += a[i] == 0 || a[i] != b[i] ? 1 : 0;
  return crossed;
}

std::vector<Place> PlacesOf(const std::vector<RankedHost>& hosts) {
  const auto rails = RailsOf(hosts);
  std::map<std::string, int> numbers;
  std::vector<Place> places;
  for (const RankedHost& host : hosts) {
    Place place;
    for (const std::string& rail : rails) {
      const auto leaf = host.leaves.find(rail);
      place.push_back(
          leaf == host.leaves.end()
              ? 0
              : numbers.emplace(leaf->second, static_cast<int>(numbers.size()) + 1).first->second);
    }
    places.push_back(std::move(place));
  }
  return places;
}

// Hosts that share all of their leaves, by their positions; in the order of their first ones.
struct Group {
  Place place;
  std::vector<std::size_t> hosts;
};

std::vector<Group> GroupsOf(const std::vector<Place>& places) {
  std::vector<Group> groups;
  std::map<Place, std::size_t> known;
  for (std::size_t host = 0; host < places.size(); ++host) {
    const auto [at, is_new] = known.emplace(places[host], groups.size());
    if (is_new) groups.push_back({places[host], {}});
    groups[at->second].hosts.push_back(host);
  }
  return groups;
}

// From each on to the nearest that is left, of several the first; from the first group on.
std::vector<Group> Nearest(std::vector<Group> groups) {
  for (std::size_t at = 1; at < groups.size(); ++at) {
    const auto begin = groups.begin() + static_cast<std::ptrdiff_t>(at);
    const Place here = groups[at - 1].place;
    const auto next = std::min_element(begin, groups.end(), [&](const Group& a, const Group& b) {
      return Distance(here, a.place) < Distance(here, b.place);
    });
    std::rotate(begin, next, next + 1);
  }
  return groups;
}

// How much fewer edges cross when the piece [from, to] is turned round, within the ring.
int Gain(const std::vector<Group>& ring, std::size_t from, std::size_t to) {
  const Place& before = ring[from - 1].place;
  const Place& after = ring[(to + 1) % ring.size()].place;
  return Distance(before, ring[from].place) + Distance(ring[to].place, after) -
         Distance(before, ring[to].place) - Distance(ring[from].place, after);
}

// Each turn makes the ring better, so it ends.
void Improve(std::vector<Group>& ring) {
  for (bool better = true; better;) {
    better = false;
    for (std::size_t from = 1; from + 1 < ring.size(); ++from) {
      for (std::size_t to = from + 1; to < ring.size(); ++to) {
        if (Gain(ring, from, to) <= 0) continue;
        std::reverse(ring.begin() + static_cast<std::ptrdiff_t>(from),
                     ring.begin() + static_cast<std::ptrdiff_t>(to) + 1);
        better = true;
      }
    }
  }
}

}  // namespace

RankedHost RankedHostOf(const LeafReport& report) {
  RankedHost host{report.node, {}};
  for (const RailLeaf& rail : report.rails) {
    if (rail.neighbour) host.leaves[rail.rail] = rail.neighbour->neighbour.Leaf();
  }
  return host;
}

CrossedEdges CountCrossed(const std::vector<RankedHost>& ring) {
  CrossedEdges crossed;
  for (const std::string& rail : RailsOf(ring)) {
    std::size_t& count = crossed[rail];
    for (std::size_t i = 0; i < RingEdges(ring.size()); ++i) {
      const auto& next = ring[(i + 1) % ring.size()];
      const auto here = ring[i].leaves.find(rail);
      const auto there = next.leaves.find(rail);
      const bool stays =
          here != ring[i].leaves.end() && there != next.leaves.end() && here->second == there->second;
      if (!stays) ++count;
    }
  }
  return crossed;
}

std::size_t SumOf(const CrossedEdges& crossed) {
  std::size_t sum = 0;
  for (const auto& [rail, count] : crossed) sum += count;
  return sum;
}

std::vector<RankedHost> OrderRanks(const std::vector<RankedHost>& hosts) {
  auto ring = Nearest(GroupsOf(PlacesOf(hosts)));
  Improve(ring);
  std::vector<RankedHost> ordered;
  for (const Group& group : ring) {
    for (const std::size_t host : group.hosts) ordered.push_back(hosts[host]);
  }
  return SumOf(CountCrossed(ordered)) < SumOf(CountCrossed(hosts)) ? ordered : hosts;
}

}  // namespace railhead
