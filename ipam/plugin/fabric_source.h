// The fabric and this node's place in it, for what a configuration asks of them.
// Reads each file once, and only when it is needed.
// Ownership: borrows the root. Errors: as ReadFabric() and NodeName(); kInvalid when the fabric
// does not say what is needed, with what to write. Threads: none.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cni/fabric/fabric.h"
#include "ipam/plugin/fields.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

class FabricSource {
 public:
  FabricSource(const Root& root, std::string path) : root_(root), path_(std::move(path)) {}

  // nullptr: there is none.
  Result<const Fabric*> IfThere();
  // For `fields`, which names a rail.
  Result<const Fabric*> For(const PoolFields& fields);
  // This node's name, as fabrics know it.
  Result<std::string> Node();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const Root& root_;
  std::string path_;
  std::optional<Fabric> fabric_;
  std::string node_;
};

// What of `given`, of a range that all nodes of a cluster share, this node may give: its slice of
// the subnet, of `length`, by its index in the fabric. Without a fabric of several nodes: all of it.
Result<AddressRange> WithinSlice(const RangeFields& range, const AddressRange& given,
                                 const std::optional<int>& length, FabricSource& source);

}  // namespace railhead
