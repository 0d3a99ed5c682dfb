// fabric.json.
#include "cni/fabric/fabric.h"

#include <set>

#include "cni/fabric/fabric_base.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

void Inspect(const Fabric& fabric) {
  std::set<std::string> names;
  Require(fabric.rails.empty() || !fabric.pools.empty(), "a fabric with rails has a pool");
  for (const auto& rail : fabric.rails) {
    Require(names.insert(rail.name).second, "rails have different names");
    Require(!rail.vlan || (*rail.vlan >= 0 && *rail.vlan <= 4094), "a rail's VLAN is one");
    for (const auto& [node, ranges] : rail.node_ranges) {
      for (const auto& range : ranges) {
        // A group of nodes may give it.
        Require(rail.subnet || !fabric.node_groups.empty() || fabric.of_node, "ranges have a subnet");
        if (!rail.subnet) continue;
        Require(rail.subnet->Contains(range.first) && rail.subnet->Contains(range.last),
                "a node's range is in its rail's subnet");
      }
      Require(rail.RangesOf(node, std::nullopt) == ranges, "a node's ranges are found by its name");
    }
    for (const auto& [node, index] : fabric.nodes) {
      for (const auto& range : rail.RangesOf(node, index)) {
        Require(range.first <= range.last, "a node's share begins before it ends");
      }
    }
  }
  for (const auto& pool : fabric.pools) {
    for (const auto& name : pool.rails) Require(fabric.FindRail(name) != nullptr, "a pool's rails exist");
  }
  (void)fabric.RailOfPf("pf0", "0000:43:00.0", {"0000:43:00.0", "0000:83:00.0"});
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto base = railhead::FabricBase::Parse(railhead::fuzz::TextOf(data, size), "fabric.json");
  if (!base) return 0;
  railhead::fuzz::Inspect(base->fabric());
  for (const char* node : {"gpu-01", "x"}) {
    const auto fabric = base->FabricOf(node);
    if (!fabric) continue;
    railhead::fuzz::Inspect(*fabric);
    const auto text = base->TextOf(node);
    railhead::fuzz::Require(text && railhead::ParseFabric(*text, "fabric.json") == *fabric,
                            "a node installs what it reads");
  }
  (void)base->SubnetConflicts();
  return 0;
}
