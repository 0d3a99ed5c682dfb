#include "cni/nccl/topology_tree.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "netns/base/text.h"
#include "netns/sys/pci_path.h"

namespace railhead::nccl {
namespace {

using Parts = std::vector<std::string>;

constexpr int kNoNode = -1;

// The host bridge and at least one bridge.
constexpr std::size_t kShortestSwitch = 2;

// The bridges down to the one that the function hangs on. Without a bridge between, only the host bridge. A
// root port with only the function below it counts: functions that share it (those of one card) are PIX.
Parts SwitchOf(const PciDevice& function) {
  Parts parts = PartsOfPciPath(function.path);
  if (parts.front().empty()) return {};
  parts.pop_back();
  if (parts.size() > kShortestSwitch) parts.pop_back();
  return parts;
}

Parts Shared(const Parts& a, const Parts& b) {
  return {a.begin(), std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first};
}

// All places that functions hang on, and the places where two of these part. In sorted order each place of
// the second kind lies between neighbours.
std::set<Parts> Switches(const std::vector<PciDevice>& functions) {
  std::set<Parts> used;
  for (const PciDevice& function : functions) {
    Parts parts = SwitchOf(function);
    if (parts.size() >= kShortestSwitch) used.insert(std::move(parts));
  }
  std::set<Parts> all = used;
  const Parts* before = nullptr;
  for (const Parts& parts : used) {
    if (before != nullptr) {
      Parts shared = Shared(*before, parts);
      if (shared.size() >= kShortestSwitch) all.insert(std::move(shared));
    }
    before = &parts;
  }
  return all;
}

// The NUMA node of each host bridge.
std::map<std::string, int> NodesOf(const std::vector<PciDevice>& functions) {
  std::map<std::string, int> nodes;
  for (const PciDevice& function : functions) {
    const auto [at, added] = nodes.emplace(PartsOfPciPath(function.path).front(), kNoNode);
    if (at->second == kNoNode) at->second = function.numa_node.value_or(kNoNode);
  }
  return nodes;
}

// The nearest of `numbers` above `parts`, itself not counted.
std::optional<std::size_t> Above(Parts parts, const std::map<Parts, std::size_t>& numbers) {
  for (parts.pop_back(); parts.size() >= kShortestSwitch; parts.pop_back()) {
    if (const auto found = numbers.find(parts); found != numbers.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace

TopologyTree TopologyTreeOf(const std::vector<PciDevice>& functions) {
  TopologyTree tree;
  const auto nodes = NodesOf(functions);
  std::map<Parts, std::size_t> numbers;
  // A switch comes before those below it.
  for (const Parts& parts : Switches(functions)) {
    const std::size_t number = tree.switches.size();
    const auto above = Above(parts, numbers);
    (above ? tree.switches[*above].switches : tree.cpus[nodes.at(parts.front())].switches).push_back(number);
    tree.switches.push_back({.path = Join(parts, "/"), .functions = {}, .switches = {}});
    numbers.emplace(parts, number);
  }
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const auto found = numbers.find(SwitchOf(functions[i]));
    if (found != numbers.end()) {
      tree.switches[found->second].functions.push_back(i);
      continue;
    }
    const std::string host = PartsOfPciPath(functions[i].path).front();
    const int node = host.empty() ? functions[i].numa_node.value_or(kNoNode) : nodes.at(host);
    tree.cpus[node].functions.push_back(i);
  }
  return tree;
}

}  // namespace railhead::nccl
