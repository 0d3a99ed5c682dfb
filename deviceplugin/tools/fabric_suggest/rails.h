// Which PFs of the nodes are one rail, and which of them have a wrong cable.
//
// A PF takes part if it has RDMA over Ethernet (also soft RoCE), one port, and no task for the host itself:
// no default route, no bond. On nodes of one kind PFs with the same PCI address are one rail. Rails are
// numbered in PCI order. Nodes of another kind have other addresses: there the leaf switches decide which PF
// belongs to which rail, or else the order. If some PFs share a PCIe switch with an accelerator, PFs without
// one are taken for storage. PFs of rails that a present fabric has stay the same rails.
//
// Cables are compared, not judged by names. Nodes of a scalable unit share leaf switches, so a switch that
// serves a rail on one of them serves it on all of them. Ownership: the result points into the observations.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/fabric_suggest/findings.h"
#include "deviceplugin/tools/fabric_suggest/observe.h"

namespace railhead::fabric_suggest {

// The largest number of rails that is suggested: their routing tables stay below the kernel's own.
inline constexpr std::size_t kMostRails = 128;

struct RailMember {
  const NodeObservation* node = nullptr;
  const ObservedPf* pf = nullptr;
};

struct AlignedRail {
  std::string name;
  std::vector<RailMember> members;  // in the order of the nodes

  [[nodiscard]] const ObservedPf* Of(const NodeObservation* node) const;
};

using Nodes = std::vector<const NodeObservation*>;  // of different names, naturally sorted

// Why the PF carries no rail; "": it can.
std::string WhyNoRail(const ObservedPf& pf);

// The fabric's rail of the PF; nullptr: none. `fabric` may be nullptr.
const Rail* RailInFabric(const Fabric* fabric, const NodeObservation& node, const ObservedPf& pf);

// `all_pfs`: also PFs that are taken for storage. `present`: nullptr, or the fabric that there is.
std::vector<AlignedRail> AlignRails(const Nodes& nodes, bool all_pfs, const Fabric* present,
                                    Findings* findings);

struct Cables {
  std::vector<std::set<std::string>> switches;          // by rail: those of right cables
  std::set<std::pair<std::size_t, std::string>> wrong;  // rail and node
  std::vector<std::size_t> heard;                       // by rail: nodes with an LLDP neighbor

  [[nodiscard]] bool IsWrong(std::size_t rail, const NodeObservation& node) const {
    return wrong.contains({rail, node.node});
  }
};

Cables CompareCables(const Nodes& nodes, const std::vector<AlignedRail>& rails, Findings* findings);

}  // namespace railhead::fabric_suggest
