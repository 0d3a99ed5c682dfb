// Whether the fabric is described, and this node has its rails.
#include <algorithm>

#include "deviceplugin/tools/doctor/checks.h"

namespace railhead::doctor {

namespace {

// Nothing is wrong with such a rule where one team has the cluster.
void NoteRulesForAll(const NetworkPolicy& policy, Verdict& verdict) {
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    const NetworkRule& rule = policy.rules[i];
    if (!rule.networks.empty() || !rule.namespaces.empty()) continue;
    if (rule.keys.empty() && !rule.any_device && rule.ipam_types.empty()) continue;
    verdict.Note("policy.networks[" + std::to_string(i) + "] is for every network of every namespace",
                 "name its networks or namespaces, if pods of several tenants run here");
  }
}

}  // namespace

Verdict CheckFabric(const NodeFacts& facts) {
  Verdict verdict;
  if (facts.fabric_error) {
    const std::string& hint = facts.fabric_error->hint;
    return verdict.Fail(facts.fabric_error->message,
                        hint.empty() ? "all that is wrong with it: railctl config check FILE" : hint);
  }
  if (facts.fabric) {
    verdict.Ok(std::to_string(facts.fabric->rails.size()) + " rails");
    NoteRulesForAll(facts.fabric->policy, verdict);
    return verdict;
  }
  if (facts.sriovdp_config) {
    verdict.Add(Status::kWarning,
                "there is no fabric.json: railheadd goes by sriov-network-device-plugin's configuration, and "
                "every network may set VLAN, MAC, addresses and the rest",
                "railctl migrate makes a fabric.json of it, whose policy limits networks");
    return verdict;
  }
  return verdict.Fail("there is no " + std::string(kFabricPath),
                      "describe the fabric: docs/reference/fabric.md");
}

Verdict CheckRails(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.fabric) return verdict.Skip("there is no valid fabric.json");
  if (!facts.pfs_unknown.empty()) return verdict.Skip(facts.pfs_unknown);
  for (const Rail& rail : facts.fabric->rails) {
    const auto found = std::find_if(facts.pfs.begin(), facts.pfs.end(),
                                    [&](const PfFacts& pf) { return pf.rail == rail.name; });
    if (found != facts.pfs.end()) {
      verdict.Ok(rail.name + ": " + found->Name());
    } else {
      verdict.Add(Status::kWarning, "no PF of this node is rail " + rail.name,
                  "compare \"pf\" of the rail with the names, addresses and positions of `railctl topo`");
    }
  }
  // A node with none of them has no use for Railhead.
  const bool any =
      std::any_of(facts.pfs.begin(), facts.pfs.end(), [](const PfFacts& pf) { return !pf.rail.empty(); });
  if (!any && !facts.fabric->rails.empty()) {
    verdict.Fail(
        "this node has none of the fabric's rails",
        "compare \"pf\" of the rails with the names, addresses and positions of `railctl topo`; is the "
        "NIC's driver loaded?");
  }
  return verdict;
}

Verdict CheckCabling(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.leaves) return verdict.Skip(facts.leaves.why());
  for (const RailLeaf& rail : facts.leaves->rails) {
    const std::string leaf = rail.neighbour ? rail.neighbour->neighbour.Leaf() : "";
    switch (rail.cabling) {
      case Cabling::kWrong:
        verdict.Warn(rail.rail + " hangs on " + leaf + ", port " + rail.neighbour->neighbour.Port() + ": " +
                         rail.because,
                     "change the cables, or say in fabric.json which switches the rail's `leaf` may be");
        break;
      case Cabling::kRight:
      case Cabling::kUnchecked:
        verdict.Ok(rail.rail + ": " + leaf);
        break;
      case Cabling::kUnknown:
        // Of rails that nobody asks about: many switches and some NICs keep LLDP to themselves.
        if (rail.expected.empty()) {
          verdict.Skip(rail.rail + ": nothing is heard of its switch");
        } else {
          verdict.Note(rail.rail + ": nothing is heard of its switch" +
                           (rail.because.empty() ? "" : ", " + rail.because),
                       "LLDP has to be on at the switch's port, and not be kept by the NIC's firmware: "
                       "docs/fabric-topology.md");
        }
        break;
    }
  }
  return verdict;
}

}  // namespace railhead::doctor
