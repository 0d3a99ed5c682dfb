// Compares which leaf switches the rails are connected to.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/folded_names.h"
#include "deviceplugin/tools/fabric_suggest/rails.h"

namespace railhead::fabric_suggest {
namespace {

// The switch of each node's rails. "": no LLDP frame was heard.
class CableTable {
 public:
  CableTable(const Nodes& nodes, const std::vector<AlignedRail>& rails) : nodes_(nodes), rails_(rails) {
    for (const NodeObservation* node : nodes) {
      auto& row = switches_.emplace_back();
      for (const AlignedRail& rail : rails) {
        const ObservedPf* pf = rail.Of(node);
        row.push_back(pf != nullptr && pf->neighbor ? pf->neighbor->SwitchName() : "");
      }
    }
    wrong_.assign(nodes.size(), std::vector<bool>(rails.size(), false));
  }

  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t rail_count() const { return rails_.size(); }
  [[nodiscard]] const std::string& At(std::size_t node, std::size_t rail) const {
    return switches_[node][rail];
  }
  // With a switch, and not known to be wrong.
  [[nodiscard]] bool Counts(std::size_t node, std::size_t rail) const {
    return !At(node, rail).empty() && !wrong_[node][rail];
  }
  [[nodiscard]] const std::string& NodeName(std::size_t node) const { return nodes_[node]->node; }
  [[nodiscard]] const std::string& RailName(std::size_t rail) const { return rails_[rail].name; }
  void MarkWrong(std::size_t node, std::size_t rail) { wrong_[node][rail] = true; }
  [[nodiscard]] bool IsWrong(std::size_t node, std::size_t rail) const { return wrong_[node][rail]; }

  // "leaf0 port swp3"
  [[nodiscard]] std::string EndOf(std::size_t node, std::size_t rail) const {
    const ObservedPf* pf = rails_[rail].Of(nodes_[node]);
    return pf->neighbor->SwitchName() + " port " + pf->neighbor->Port();
  }

 private:
  const Nodes& nodes_;
  const std::vector<AlignedRail>& rails_;
  std::vector<std::vector<std::string>> switches_;
  std::vector<std::vector<bool>> wrong_;
};

// By switch: the rails that it serves. It serves a rail if most of its nodes have that rail there. Of as many
// nodes that have it there as elsewhere the first decides.
using ServedRails = std::map<std::string, std::set<std::size_t>>;

ServedRails RailsOfSwitches(const CableTable& table) {
  std::map<std::string, std::vector<std::size_t>> nodes_of;
  for (std::size_t node = 0; node < table.node_count(); ++node) {
    std::set<std::string> seen;
    for (std::size_t rail = 0; rail < table.rail_count(); ++rail) seen.insert(table.At(node, rail));
    seen.erase("");
    for (const std::string& name : seen) nodes_of[name].push_back(node);
  }
  ServedRails served;
  for (const auto& [name, nodes] : nodes_of) {
    for (std::size_t rail = 0; rail < table.rail_count(); ++rail) {
      std::size_t here = 0;
      std::size_t elsewhere = 0;
      bool first_is_here = false;
      for (const std::size_t node : nodes) {
        if (table.At(node, rail).empty()) continue;
        const bool is_here = table.At(node, rail) == name;
        if (here + elsewhere == 0) first_is_here = is_here;
        ++(is_here ? here : elsewhere);
      }
      if (here > elsewhere || (here == elsewhere && here > 0 && first_is_here)) served[name].insert(rail);
    }
  }
  return served;
}

bool Serves(const ServedRails& served, const std::string& name, std::size_t rail) {
  const auto found = served.find(name);
  return found != served.end() && found->second.contains(rail);
}

// "rail1", or "rail1 and rail2".
std::string RailsServedBy(const CableTable& table, const ServedRails& served, const std::string& name) {
  std::vector<std::string> names;
  const auto found = served.find(name);
  if (found == served.end()) return "no rail";
  names.reserve(found->second.size());
  for (const std::size_t rail : found->second) names.push_back(table.RailName(rail));
  return reachability::FoldedNames(names);
}

// The rail that has the cable of this one, while this one has the other's.
std::optional<std::size_t> SwappedWith(const CableTable& table, const ServedRails& served, std::size_t node,
                                       std::size_t rail) {
  for (std::size_t other = 0; other < table.rail_count(); ++other) {
    if (other == rail || table.At(node, other).empty()) continue;
    if (Serves(served, table.At(node, rail), other) && Serves(served, table.At(node, other), rail))
      return other;
  }
  return std::nullopt;
}

void FindMisplaced(CableTable* table, Findings* findings) {
  const ServedRails served = RailsOfSwitches(*table);
  for (std::size_t rail = 0; rail < table->rail_count(); ++rail) {
    for (std::size_t node = 0; node < table->node_count(); ++node) {
      const std::string& name = table->At(node, rail);
      if (name.empty() || Serves(served, name, rail)) continue;
      table->MarkWrong(node, rail);
      const auto other = SwappedWith(*table, served, node, rail);
      findings->Contradict(table->RailName(rail), "switch", table->NodeName(node),
                           "it is connected to " + table->EndOf(node, rail) + ", the switch of " +
                               RailsServedBy(*table, served, name) +
                               (other ? ": swapped with " + table->RailName(*other) : ""));
    }
  }
}

// Whether the nodes share most of the switches of their other rails.
bool ArePeers(const CableTable& table, std::size_t one, std::size_t other, std::size_t but) {
  std::size_t common = 0;
  std::size_t compared = 0;
  for (std::size_t rail = 0; rail < table.rail_count(); ++rail) {
    if (rail == but || !table.Counts(one, rail) || !table.Counts(other, rail)) continue;
    ++compared;
    if (table.At(one, rail) == table.At(other, rail)) ++common;
  }
  return common * 2 > compared;
}

// A switch that serves none of a node's peers. Says where the peers have the rail; "": the node is right.
std::string WherePeersAre(const CableTable& table, std::size_t node, std::size_t rail) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> votes;  // nodes, and the first of them
  for (std::size_t other = 0; other < table.node_count(); ++other) {
    if (!table.Counts(other, rail) || (other != node && !ArePeers(table, node, other, rail))) continue;
    ++votes.try_emplace(table.At(other, rail), 0, other).first->second.first;
  }
  const auto better = [](const auto& one, const auto& another) {
    if (one.second.first != another.second.first) return one.second.first < another.second.first;
    return one.second.second > another.second.second;
  };
  const auto most = std::ranges::max_element(votes, better);
  return most == votes.end() || most->first == table.At(node, rail) ? "" : most->first;
}

void FindUnusual(CableTable* table, Findings* findings) {
  std::vector<std::pair<std::size_t, std::size_t>> unusual;
  for (std::size_t rail = 0; rail < table->rail_count(); ++rail) {
    for (std::size_t node = 0; node < table->node_count(); ++node) {
      if (!table->Counts(node, rail)) continue;
      const std::string usual = WherePeersAre(*table, node, rail);
      if (usual.empty()) continue;
      unusual.emplace_back(node, rail);
      findings->Contradict(table->RailName(rail), "switch", table->NodeName(node),
                           "it is connected to " + table->EndOf(node, rail) +
                               "; nodes with the same other switches are connected to " + usual);
    }
  }
  for (const auto& [node, rail] : unusual) table->MarkWrong(node, rail);
}

}  // namespace

Cables CompareCables(const Nodes& nodes, const std::vector<AlignedRail>& rails, Findings* findings) {
  CableTable table(nodes, rails);
  FindMisplaced(&table, findings);
  FindUnusual(&table, findings);
  Cables cables;
  cables.switches.resize(rails.size());
  cables.heard.assign(rails.size(), 0);
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (table.IsWrong(node, rail)) cables.wrong.insert({rail, nodes[node]->node});
      if (table.At(node, rail).empty()) continue;
      ++cables.heard[rail];
      if (table.Counts(node, rail)) cables.switches[rail].insert(table.At(node, rail));
    }
  }
  return cables;
}

}  // namespace railhead::fabric_suggest
