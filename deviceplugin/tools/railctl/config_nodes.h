// The nodes of a fabric with groups, for `railctl config check`: which groups a node has and what they
// change, and what is wrong with the fabric that follows. Threads: pure functions, but for ReadNodeNames(),
// which reads a file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric_base.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::railctl {

struct GroupedNode {
  std::string node;
  std::vector<std::string> groups;
  std::optional<int> index;  // that `nodes` lists
  std::vector<GroupValue> changes;

  static void List(auto& f) {
    f("node", &GroupedNode::node);
    f("groups", &GroupedNode::groups);
    f("index", &GroupedNode::index);
    f("changes", &GroupedNode::changes);
  }
};
GroupedNode NodeWithGroups(const FabricBase& base, const std::string& node);

struct GroupSize {
  std::string group;  // "": nodes that no group has
  std::size_t nodes = 0;

  static void List(auto& f) {
    f("group", &GroupSize::group);
    f("nodes", &GroupSize::nodes);
  }
};
// In the order of the base; nodes without a group last, if there are any.
std::vector<GroupSize> GroupSizes(const FabricBase& base, const std::vector<std::string>& nodes);

// Errors: those of each node's fabric, and a node without a subnet on a rail to which a group gives one.
std::vector<Error> ErrorsForNodes(const FabricBase& base, const std::vector<std::string>& nodes);
// Those of WarningsOf() of each node's fabric, and patterns that match none of the nodes.
std::vector<Error> WarningsForNodes(const FabricBase& base, const std::string& what,
                                    const std::vector<std::string>& nodes);

// Names, one a line, or what `kubectl get nodes -o json` prints. Errors: kNotFound; kMalformed for JSON that
// is neither.
Result<std::vector<std::string>> ReadNodeNames(const Root& root, const std::string& path);

}  // namespace railhead::railctl
