#include "deviceplugin/tools/fabric_suggest/capacity.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "deviceplugin/services/node_index/node_addresses.h"
#include "deviceplugin/services/reachability/folded_names.h"
#include "deviceplugin/tools/fabric_suggest/rail_fields.h"
#include "ipam/store/range.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"

namespace railhead::fabric_suggest {
namespace {

constexpr const char* kPfResource = "railhead.io/roce-pf";
constexpr int kUsualVfs = 8;
constexpr int kMostBlockBits = 24;  // blocks that are tried for the nodes

// The VFs that the rail's PFs have, or could have; nullopt: none of them has SR-IOV.
struct RailVfs {
  std::optional<int> present;   // on most nodes
  int most = 0;                 // on the PF that can have the fewest
  bool some_have_none = false;  // others have VFs
};

std::optional<RailVfs> VfsOf(const AlignedRail& aligned, Findings* findings) {
  Votes<int> present;
  std::optional<int> most;
  std::vector<std::string> without;
  bool some_have_none = false;
  for (const RailMember& member : aligned.members) {
    if (member.pf->vfs > 0) present.Add(member.pf->vfs, member.node->node);
    some_have_none = some_have_none || member.pf->vfs == 0;
    const int possible = std::max(member.pf->most_vfs, member.pf->vfs);
    if (possible == 0) {
      without.push_back(member.node->node);
    } else {
      most = std::min(most.value_or(possible), possible);
    }
  }
  if (!most) return std::nullopt;
  for (const std::string& node : without)
    findings->Contradict(aligned.name, "vfs", node, "the PF has no SR-IOV, on other nodes it has");
  ContradictOthers(
      present, aligned.name, "vfs", "number of VFs", [](int vfs) { return std::to_string(vfs); }, findings);
  if (present.empty()) return RailVfs{std::nullopt, *most, false};
  for (const RailMember& member : aligned.members) {
    const int possible = std::max(member.pf->most_vfs, member.pf->vfs);
    if (possible == 0 || possible >= present.Winner()) continue;
    findings->Contradict(aligned.name, "vfs", member.node->node,
                         "the PF can have " + std::to_string(possible) + " VFs, on other nodes it has " +
                             std::to_string(present.Winner()));
  }
  return RailVfs{present.Winner(), *most, some_have_none};
}

int AcceleratorsOf(const Nodes& nodes) {
  int most = 0;
  for (const NodeObservation* node : nodes) most = std::max(most, node->accelerators);
  return most;
}

// The number for all rails, and each rail that differs from it.
void SetVfs(const std::vector<AlignedRail>& aligned, const Nodes& nodes, Draft* draft, Findings* findings) {
  std::map<std::string, RailVfs> rails;
  Votes<int> present;
  for (const AlignedRail& rail : aligned) {
    const auto vfs = VfsOf(rail, findings);
    if (!vfs) continue;
    rails.emplace(rail.name, *vfs);
    if (vfs->present) present.Add(*vfs->present, rail.name);
  }
  if (rails.empty()) return;
  const int accelerators = AcceleratorsOf(nodes);
  int possible = 0;
  bool some_have_none = false;
  for (const auto& [name, vfs] : rails) {
    possible = std::max(possible, vfs.most);
    some_have_none = some_have_none || vfs.some_have_none;
  }
  const int wanted = std::min(accelerators > 0 ? accelerators : kUsualVfs, possible);
  draft->vfs = present.empty() ? wanted : present.Winner();
  if (!present.empty()) {
    findings->guesses.push_back(
        {"/provision/vfs", "", "VFs", std::to_string(*draft->vfs),
         some_have_none ? "PFs have as many now, and other PFs have none" : "PFs have as many now",
         some_have_none ? Certainty::kLow : Certainty::kHigh});
  } else {
    findings->guesses.push_back({"/provision/vfs", "", "VFs", std::to_string(*draft->vfs),
                                 accelerators > 0
                                     ? "one for each of a node's accelerators; the PFs have no VFs now"
                                     : "a usual number; the PFs have no VFs now",
                                 accelerators > 0 ? Certainty::kMedium : Certainty::kLow});
  }
  for (const AlignedRail& rail : aligned) {
    const std::string& name = rail.name;
    const auto found = rails.find(name);
    int vfs = 0;
    if (found != rails.end()) vfs = found->second.present.value_or(std::min(*draft->vfs, found->second.most));
    if (vfs == *draft->vfs) continue;
    draft->own[name] = vfs;
    const std::string why = found == rails.end()    ? "its PFs have no SR-IOV"
                            : found->second.present ? "its PFs have as many now"
                                                    : "one of its PFs can have no more";
    findings->guesses.push_back(
        {"/provision/rails/" + name + "/vfs", name, "VFs", std::to_string(vfs), why, Certainty::kHigh});
  }
}

// What keeps pods from getting the rail's whole PFs.
void NameObstacles(const AlignedRail& aligned, Rail* rail, Findings* findings) {
  for (const RailMember& member : aligned.members) {
    const bool used = std::ranges::any_of(
        member.pf->networks, [](const ObservedNetwork& network) { return !network.addresses.empty(); });
    if (!used) continue;
    findings->Contradict(rail->name, "pf", member.node->node,
                         "pods would get its whole PF, which has an address of the host");
  }
  if (rail->vlan.value_or(0) == 0) return;
  findings->Contradict(rail->name, "vlan", "",
                       "pods get its whole PFs, which nothing gives VLAN " + std::to_string(*rail->vlan) +
                           ": the switch port has to");
  rail->vlan.reset();
}

// Rails without SR-IOV are given out as whole PFs.
void SetPools(const std::vector<AlignedRail>& aligned, Draft* draft, Findings* findings) {
  Pool vfs{.resource = kDefaultResource};
  Pool pfs{.resource = kDefaultResource, .device = PoolDevice::kPf};
  for (std::size_t i = 0; i < aligned.size(); ++i) {
    Rail& rail = draft->fabric.rails[i];
    const auto own = draft->own.find(rail.name);
    const int count = own == draft->own.end() ? draft->vfs.value_or(0) : own->second;
    (count > 0 ? vfs : pfs).rails.push_back(rail.name);
    if (count == 0) NameObstacles(aligned[i], &rail, findings);
  }
  if (pfs.rails.empty()) return;
  findings->guesses.push_back({"/pools", "", "whole PFs for", reachability::FoldedNames(pfs.rails),
                               "the PFs have no SR-IOV", Certainty::kHigh});
  if (!vfs.rails.empty()) {
    pfs.resource = kPfResource;
    draft->fabric.pools.push_back(vfs);
  }
  draft->fabric.pools.push_back(pfs);
}

void NameRailsInNoPool(const Draft& draft, Findings* findings) {
  for (std::size_t i = draft.kept; i < draft.fabric.rails.size(); ++i) {
    const std::string& name = draft.fabric.rails[i].name;
    const auto has = [&](const Pool& pool) { return Contains(pool.rails, name); };
    if (!draft.fabric.pools.empty() && std::ranges::none_of(draft.fabric.pools, has))
      findings->Contradict(name, "pool", "",
                           "no pool of the fabric has it, so no pod gets it: add it to one");
  }
}

// How many devices of the rail a node has.
int DevicesOf(const Draft& draft, const Rail& rail) {
  const auto own = draft.own.find(rail.name);
  return std::max(own == draft.own.end() ? draft.vfs.value_or(1) : own->second, 1);
}

// How many addresses pods of the node can get.
std::uint64_t UsableOf(const Rail& rail, int index) {
  const auto block = rail.RangesOf("", index);
  if (block.empty() || !rail.subnet) return 0;
  const IpPrefix network = rail.NetworkOf(block.front().first);
  const auto usable =
      ipam::RangeSet::Make({network, block, rail.ExcludedFrom(block), rail.GatewayOf(network)});
  return usable ? usable->Size() : 0;
}

// Whether the hosts leave enough addresses of the block of each rail.
bool HasRoom(const Draft& draft, int index) {
  return std::ranges::all_of(draft.fabric.rails, [&](const Rail& rail) {
    return !rail.node_block || !rail.subnet ||
           UsableOf(rail, index) >= static_cast<std::uint64_t>(DevicesOf(draft, rail));
  });
}

// How many blocks each rail has.
int BlocksOf(const Draft& draft) {
  int bits = kMostBlockBits;
  for (const Rail& rail : draft.fabric.rails) {
    if (rail.subnet && rail.PartLength()) bits = std::min(bits, *rail.PartLength() - rail.subnet->length);
  }
  return 1 << bits;
}

// A block that the hosts' addresses fill is for a node only if there is no other.
void NumberNodes(const Nodes& nodes, Draft* draft, Findings* findings) {
  const int blocks = BlocksOf(*draft);
  std::vector<int> passed_over;
  std::size_t reused = 0;
  std::set<int> numbered;
  for (const auto& [name, number] : draft->fabric.nodes) numbered.insert(number);
  int next = 0;
  for (const NodeObservation* node : nodes) {
    if (node->node.empty() || draft->fabric.nodes.contains(node->node)) continue;
    for (; next < blocks && (numbered.contains(next) || !HasRoom(*draft, next)); ++next) {
      if (!numbered.contains(next)) passed_over.push_back(next);
    }
    if (next < blocks) {
      draft->fabric.nodes.emplace(node->node, next++);
      continue;
    }
    findings->Contradict("", "subnet", node->node,
                         "the hosts' addresses leave it no block with an address for each device");
    if (reused < passed_over.size()) draft->fabric.nodes.emplace(node->node, passed_over[reused++]);
  }
  findings->guesses.push_back(
      {"/nodes", "", "nodes", std::to_string(draft->fabric.nodes.size()),
       std::string(numbered.empty() ? "numbered in the order of their names"
                                    : "those that the fabric lacks have numbers that are free") +
           (passed_over.empty() ? "" : ", without blocks that the hosts' addresses fill") +
           "; a number decides a node's block and must not change afterwards",
       Certainty::kMedium});
}

void SetBlocks(const Nodes& nodes, Draft* draft, Findings* findings) {
  bool any = draft->kept > 0 && draft->fabric.UsesIndices() && !draft->fabric.ClaimsIndices();
  for (std::size_t i = draft->kept; i < draft->fabric.rails.size(); ++i) {
    Rail& rail = draft->fabric.rails[i];
    if (!rail.subnet) continue;
    const int vfs = DevicesOf(*draft, rail);
    rail.node_block = node_index::BlockLength(*rail.subnet, nodes.size(), vfs);
    if (!rail.node_block) {
      findings->Contradict(rail.name, "subnet", "",
                           rail.subnet->ToString() + " is too small for " + std::to_string(nodes.size()) +
                               " nodes with " + std::to_string(vfs) + " devices each");
      continue;
    }
    any = true;
    const int host_bits = rail.subnet->address.Bits() - *rail.node_block;
    findings->guesses.push_back({"/rails/" + std::to_string(i) + "/nodeBlock", rail.name, "nodeBlock",
                                 std::to_string(*rail.node_block),
                                 "2^" + std::to_string(host_bits) + " addresses for each node, and 2^" +
                                     std::to_string(*rail.node_block - rail.subnet->length) + " such blocks",
                                 Certainty::kMedium});
  }
  if (any) NumberNodes(nodes, draft, findings);
}

}  // namespace

void SetCapacity(const std::vector<AlignedRail>& aligned, const Nodes& nodes, Draft* draft,
                 Findings* findings) {
  if (draft->kept == 0) {
    SetVfs(aligned, nodes, draft, findings);
    SetPools(aligned, draft, findings);
  } else {
    NameRailsInNoPool(*draft, findings);
  }
  SetBlocks(nodes, draft, findings);
}

}  // namespace railhead::fabric_suggest
