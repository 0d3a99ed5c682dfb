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
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::ipam {

class FabricSource {
 public:
  FabricSource(const Root& root, std::string path) : root_(root), path_(std::move(path)) {}

  // nullptr: the node has no fabric.
  Result<const Fabric*> IfThere();
  // For `fields`, which names a rail.
  Result<const Fabric*> For(const PoolFields& fields);
  // This node's name, as fabrics know it.
  Result<std::string> Node();
  // This node's index; nullopt: nothing gives it one. Errors: as IndexOfThisNode().
  Result<std::optional<int>> Index();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const Root& root_;
  std::string path_;
  std::optional<Fabric> fabric_;
  std::string node_;
};

// The part of `given` that this node may allocate; all nodes of the cluster share the range of `given`. The
// part is the node's slice of the subnet, of `length`, by its index in the fabric. Without a fabric of
// several nodes it is the whole of `given`.
Result<IpRange> WithinSlice(const RangeFields& range, const IpRange& given, const std::optional<int>& length,
                            FabricSource& source);

}  // namespace railhead::ipam
