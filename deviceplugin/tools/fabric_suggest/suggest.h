// Suggest: a fabric.json from what nodes show, with a reason for each value.
//
// ParseFabric() takes the result, whatever the nodes show. The order of the observations makes no difference.
// Values on which nodes differ are those of most nodes, and each difference is a contradiction. Of as many
// nodes with one value as with another, the smaller value is taken.
//
// rails: rails.h decides which PFs are one rail.
//
// pf: names if they are the same on all nodes, else PCI addresses, else positions.
//
// softRoce: if the PFs have RDMA by soft RoCE only.
//
// vlan: the VLAN of the VFs or of a VLAN device of the host, else the only one that the switch ports name
// (LLDP). A port that states a VLAN of untagged frames needs no `vlan`.
//
// mtu: the MTU of the PFs, compared with the largest frame of the switch port (LLDP).
//
// subnet, gateway, routes: from addresses and routes of the hosts on the PFs, or from a supernet that the
// caller names. exclude: the hosts' own addresses. nodes, nodeBlock: a block of addresses for each node.
//
// expectedSwitches: the switches of two nodes or more.
//
// provision, pools: the present VFs, or one VF for each accelerator. Without SR-IOV pods get whole PFs.
//
// A present fabric is kept; rails and nodes that it lacks are added (present.h).
//
// Threads: pure functions. Errors of CheckOptions(): kInvalid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/gateway.h"
#include "deviceplugin/tools/fabric_suggest/findings.h"
#include "deviceplugin/tools/fabric_suggest/observe.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::fabric_suggest {

struct SuggestOptions {
  std::optional<IpPrefix> supernet;  // each rail gets one prefix of it, in their order
  std::optional<int> rail_prefix;    // their length; nullopt: the largest that fit
  // Where the gateway is in a subnet in which the hosts have none.
  std::optional<Gateway> gateway;
  bool all_pfs = false;  // also PFs that are taken for storage
  // The text of a fabric.json without errors, whose rails and sections are kept (present.h); "": none.
  std::string present;
};

Result<void> CheckOptions(const SuggestOptions& options);

struct Suggestion {
  std::string fabric;  // as text, with a newline; "": no PF can carry a rail
  std::vector<Guess> guesses;
  std::vector<Contradiction> contradictions;
};

// Of two observations of one node, the later one counts. `options` have passed CheckOptions().
Suggestion Suggest(const std::vector<NodeObservation>& observations, const SuggestOptions& options = {});

}  // namespace railhead::fabric_suggest
