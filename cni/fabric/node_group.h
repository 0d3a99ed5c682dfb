// NodeGroup: nodes that differ from the fabric's base, and in what (docs/reference/fabric.md, `nodeGroups`).
// FabricNode: whose fabric a fabric is. Threads: values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni/fabric/index_range.h"

namespace railhead {

struct NodeGroup {
  std::string name;
  std::vector<std::string> nodes;     // patterns (node_pattern.h)
  std::optional<IndexRange> indices;  // of its nodes, and of the subnets that it gives
  // What differs: by top-level key, JSON. `rails` is an object by rail name; a rail that is false is taken
  // away.
  std::map<std::string, std::string> overrides;

  [[nodiscard]] bool Has(std::string_view node) const;
  bool operator==(const NodeGroup&) const = default;
};

struct FabricNode {
  std::string name;
  std::vector<std::string> groups;    // that apply to it, in the order of the base
  std::optional<IndexRange> indices;  // the node's index is one of them
  std::vector<IndexRange> reserved;   // without `indices`: those of groups, of which it is none

  [[nodiscard]] bool MayHave(int index) const;
  bool operator==(const FabricNode&) const = default;
};

}  // namespace railhead
