// The values of one rail that its PFs show: VLAN, MTU, subnet, gateway, routes, addresses of the hosts,
// switches.
//
// Ownership: borrows all for the call. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/fabric_suggest/findings.h"
#include "deviceplugin/tools/fabric_suggest/rails.h"
#include "deviceplugin/tools/fabric_suggest/suggest.h"

namespace railhead::fabric_suggest {

// Which nodes show which value.
template <typename T>
class Votes {
 public:
  void Add(const T& value, const std::string& node) { nodes_[value].push_back(node); }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] bool AreOne() const { return nodes_.size() == 1; }
  // The value of most nodes; of several the smallest. There has to be one.
  [[nodiscard]] const T& Winner() const {
    return std::ranges::max_element(
               nodes_,
               [](const auto& one, const auto& other) { return one.second.size() < other.second.size(); })
        ->first;
  }
  [[nodiscard]] const std::map<T, std::vector<std::string>>& nodes() const { return nodes_; }

 private:
  std::map<T, std::vector<std::string>> nodes_;
};

// Says which nodes show another value than the winner. `what`: "MTU"; `text` makes words of a value.
template <typename T, typename Text>
void ContradictOthers(const Votes<T>& votes, const std::string& rail, const std::string& key,
                      const std::string& what, Text text, Findings* findings) {
  for (const auto& [value, nodes] : votes.nodes()) {
    if (value == votes.Winner()) continue;
    for (const std::string& node : nodes) {
      findings->Contradict(rail, key, node,
                           "the " + what + " is " + text(value) + ", on other nodes " + text(votes.Winner()));
    }
  }
}

// `rail` has its name, `number` is its position. `assigned`: its subnet by the caller's supernet.
void SetRailFields(const AlignedRail& aligned, std::size_t number, const Cables& cables,
                   const SuggestOptions& options, const std::optional<IpPrefix>& assigned, Rail* rail,
                   Findings* findings);

}  // namespace railhead::fabric_suggest
