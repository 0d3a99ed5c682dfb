#include "deviceplugin/tools/fabric_suggest/rails.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <optional>

#include "deviceplugin/services/reachability/folded_names.h"
#include "netns/base/text.h"
#include "netns/sys/pci_address.h"

namespace railhead::fabric_suggest {
namespace {

// A PF's address, ordered as PCI addresses are. Other texts come first.
struct Slot {
  std::optional<PciAddress> address;
  std::string device;

  explicit Slot(const std::string& text) : address(PciAddress::Parse(text)), device(text) {}
  auto operator<=>(const Slot&) const = default;
};

using Slots = std::set<Slot>;

// Nodes whose PFs have the same addresses, but for what is missing or additional.
struct NodeKind {
  Slots slots;
  Nodes nodes;
};

std::vector<std::string> NamesOf(const Nodes& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const NodeObservation* node : nodes) names.push_back(node->node);
  return names;
}

const ObservedPf* FindPf(const NodeObservation& node, const std::string& device) {
  const auto found = std::ranges::find(node.pfs, device, &ObservedPf::device);
  return found == node.pfs.end() ? nullptr : &*found;
}

// The PF if it can carry a rail.
const ObservedPf* FindRailPf(const NodeObservation& node, const Slot& slot) {
  const ObservedPf* pf = FindPf(node, slot.device);
  return pf != nullptr && WhyNoRail(*pf).empty() ? pf : nullptr;
}

Slots SlotsOf(const NodeObservation& node) {
  Slots slots;
  for (const ObservedPf& pf : node.pfs) {
    const Slot slot(pf.device);
    if (FindRailPf(node, slot) != nullptr) slots.insert(slot);
  }
  return slots;
}

// A node that lacks some PFs, or has more, is still of the kind that it shares most of them with.
bool IsOfKind(const Slots& slots, const NodeKind& kind) {
  const auto common = static_cast<std::size_t>(
      std::ranges::count_if(slots, [&](const Slot& slot) { return kind.slots.contains(slot); }));
  return slots.empty() || common * 2 > std::min(slots.size(), kind.slots.size());
}

// The kind of most nodes first.
std::vector<NodeKind> KindsOf(const Nodes& nodes) {
  std::map<Slots, Nodes> by_slots;
  for (const NodeObservation* node : nodes) by_slots[SlotsOf(*node)].push_back(node);
  std::vector<std::pair<Slots, Nodes>> groups(by_slots.begin(), by_slots.end());
  std::ranges::stable_sort(groups, [](const auto& one, const auto& other) {
    if (one.first.empty() != other.first.empty()) return other.first.empty();
    if (one.second.size() != other.second.size()) return one.second.size() > other.second.size();
    return one.first.size() > other.first.size();
  });
  std::vector<NodeKind> kinds;
  for (const auto& group : groups) {
    const Slots& slots = group.first;
    const auto same =
        std::ranges::find_if(kinds, [&](const NodeKind& kind) { return IsOfKind(slots, kind); });
    if (same != kinds.end()) {
      same->nodes.insert(same->nodes.end(), group.second.begin(), group.second.end());
    } else if (!slots.empty()) {
      kinds.push_back({slots, group.second});
    }
  }
  for (NodeKind& kind : kinds) {
    std::ranges::sort(kind.nodes, [&](const NodeObservation* one, const NodeObservation* other) {
      return std::ranges::find(nodes, one) < std::ranges::find(nodes, other);
    });
  }
  return kinds;
}

bool IsNearAccelerator(const NodeKind& kind, const Slot& slot) {
  return std::ranges::any_of(kind.nodes, [&](const NodeObservation* node) {
    const ObservedPf* pf = FindRailPf(*node, slot);
    return pf != nullptr && (pf->path == "PIX" || pf->path == "PXB");
  });
}

// The rail that the fabric has for the slot's PFs on most nodes; nullptr: none.
const Rail* RailOfSlot(const Fabric* present, const NodeKind& kind, const Slot& slot) {
  std::map<std::string, std::pair<std::size_t, const Rail*>> votes;
  for (const NodeObservation* node : kind.nodes) {
    const ObservedPf* pf = FindRailPf(*node, slot);
    const Rail* rail = pf == nullptr ? nullptr : RailInFabric(present, *node, *pf);
    if (rail == nullptr) continue;
    auto& vote = votes[rail->name];
    ++vote.first;
    vote.second = rail;
  }
  const auto most = std::ranges::max_element(
      votes, [](const auto& one, const auto& other) { return one.second.first < other.second.first; });
  return most == votes.end() ? nullptr : most->second.second;
}

// The slots near accelerators and those of the present fabric, or all slots if none is near an accelerator.
// Says which slots are left out.
std::vector<Slot> RailSlots(const NodeKind& kind, bool all_pfs, const Fabric* present, Findings* findings) {
  const auto is_near = [&](const Slot& slot) { return IsNearAccelerator(kind, slot); };
  if (all_pfs || std::ranges::none_of(kind.slots, is_near)) return {kind.slots.begin(), kind.slots.end()};
  std::vector<Slot> slots;
  for (const Slot& slot : kind.slots) {
    if (is_near(slot) || RailOfSlot(present, kind, slot) != nullptr) {
      slots.push_back(slot);
      continue;
    }
    findings->guesses.push_back(
        {"/rails", "", "rail of " + slot.device, "",
         "it shares no PCIe switch with an accelerator, as others do; --all-pfs takes it",
         Certainty::kMedium});
  }
  return slots;
}

void AddSlot(const NodeKind& kind, const Slot& slot, AlignedRail* rail, Findings* findings) {
  for (const NodeObservation* node : kind.nodes) {
    const ObservedPf* pf = FindPf(*node, slot.device);
    const std::string why = pf == nullptr ? "is not there" : WhyNoRail(*pf);
    if (why.empty()) {
      rail->members.push_back({node, pf});
    } else {
      findings->Contradict(rail->name, "pf", node->node, "the PF " + slot.device + " " + why);
    }
  }
}

void NameAdditionalPfs(const NodeKind& kind, Findings* findings) {
  for (const NodeObservation* node : kind.nodes) {
    for (const Slot& slot : SlotsOf(*node)) {
      if (kind.slots.contains(slot)) continue;
      findings->Contradict("", "pf", node->node,
                           "the PF " + slot.device + " is not on most nodes of this kind, so it has no rail");
    }
  }
}

std::string SwitchNameOf(const ObservedPf& pf) {
  return pf.neighbor ? pf.neighbor->SwitchName() : "";
}

// On how many nodes of the kind the PF is at a switch of the rail.
std::size_t SharedSwitches(const NodeKind& kind, const Slot& slot, const AlignedRail& rail) {
  std::set<std::string> switches;
  for (const RailMember& member : rail.members) switches.insert(SwitchNameOf(*member.pf));
  switches.erase("");
  return static_cast<std::size_t>(std::ranges::count_if(kind.nodes, [&](const NodeObservation* node) {
    const ObservedPf* pf = FindRailPf(*node, slot);
    return pf != nullptr && switches.contains(SwitchNameOf(*pf));
  }));
}

// The rail of each slot by its leaf switches; nullopt: they do not decide.
std::optional<std::vector<std::size_t>> RailsBySwitch(const NodeKind& kind, const std::vector<Slot>& slots,
                                                      const std::vector<AlignedRail>& rails) {
  std::vector<std::size_t> chosen;
  for (const Slot& slot : slots) {
    std::vector<std::pair<std::size_t, std::size_t>> votes;  // and the rail
    votes.reserve(rails.size());
    for (std::size_t i = 0; i < rails.size(); ++i)
      votes.emplace_back(SharedSwitches(kind, slot, rails[i]), i);
    std::ranges::sort(votes, std::greater{});
    if (votes.empty() || votes[0].first == 0) return std::nullopt;
    if (votes.size() > 1 && votes[1].first == votes[0].first) return std::nullopt;
    if (Contains(chosen, votes[0].second)) return std::nullopt;
    chosen.push_back(votes[0].second);
  }
  return chosen;
}

// By position.
std::vector<std::size_t> FirstRails(std::size_t count) {
  std::vector<std::size_t> rails(count);
  std::iota(rails.begin(), rails.end(), std::size_t{0});
  return rails;
}

// The place of the slot's rail in the fabric among the rails of other kinds of nodes; nullopt: none.
std::optional<std::size_t> PlaceInFabric(const NodeKind& kind, const Slot& slot,
                                         const std::vector<AlignedRail>& rails, const Fabric* present) {
  const Rail* wanted = RailOfSlot(present, kind, slot);
  if (wanted == nullptr) return std::nullopt;
  const auto found = std::ranges::find_if(rails, [&](const AlignedRail& rail) {
    return std::ranges::any_of(rail.members, [&](const RailMember& one) {
      return RailInFabric(present, *one.node, *one.pf) == wanted;
    });
  });
  if (found == rails.end()) return std::nullopt;
  return static_cast<std::size_t>(found - rails.begin());
}

// The rail of each slot by the present fabric. Slots that it lacks get the rails that are left, in their
// order. nullopt: it has none of the slots.
std::optional<std::vector<std::size_t>> RailsByFabric(const NodeKind& kind, const std::vector<Slot>& slots,
                                                      const std::vector<AlignedRail>& rails,
                                                      const Fabric* present) {
  std::vector<std::optional<std::size_t>> places;
  std::set<std::size_t> taken;
  for (const Slot& slot : slots) {
    auto place = PlaceInFabric(kind, slot, rails, present);
    if (place && !taken.insert(*place).second) place.reset();
    places.push_back(place);
  }
  if (taken.empty()) return std::nullopt;
  std::vector<std::size_t> chosen;
  std::size_t next = 0;
  for (const auto& place : places) {
    while (!place && taken.contains(next)) ++next;
    chosen.push_back(place.value_or(next));
    taken.insert(chosen.back());
  }
  return chosen;
}

// Of a further kind of nodes.
std::vector<std::size_t> RailsOfKind(const NodeKind& kind, const std::vector<Slot>& slots,
                                     const std::vector<AlignedRail>& rails, const Fabric* present,
                                     Findings* findings) {
  if (auto chosen = RailsByFabric(kind, slots, rails, present)) return *std::move(chosen);
  const std::string who =
      "the PFs of " + reachability::FoldedNames(NamesOf(kind.nodes)) + " have other PCI addresses; ";
  if (auto chosen = RailsBySwitch(kind, slots, rails)) {
    findings->guesses.push_back({"/rails", "", "rails", "by leaf switch",
                                 who + "LLDP shows which leaf switch each is connected to",
                                 Certainty::kMedium});
    return *std::move(chosen);
  }
  findings->guesses.push_back(
      {"/rails", "", "rails", "by position", who + "their order in PCI was taken", Certainty::kLow});
  return FirstRails(slots.size());
}

}  // namespace

const ObservedPf* AlignedRail::Of(const NodeObservation* node) const {
  const auto found = std::ranges::find(members, node, &RailMember::node);
  return found == members.end() ? nullptr : found->pf;
}

std::string WhyNoRail(const ObservedPf& pf) {
  if (!pf.is_rdma && !pf.soft_roce) return "has no RDMA device";
  if (pf.link_type == "infiniband") return "is an InfiniBand port";
  if (pf.several_ports) return "has several ports on one PCI function";
  if (pf.default_route) return "carries the host's default route or the node's address";
  if (!pf.master.empty()) return "is a port of " + pf.master;
  return "";
}

const Rail* RailInFabric(const Fabric* fabric, const NodeObservation& node, const ObservedPf& pf) {
  if (fabric == nullptr) return nullptr;
  std::vector<std::string> order;
  order.reserve(node.pfs.size());
  for (const ObservedPf& one : node.pfs) order.push_back(one.device);
  return fabric->RailOfPf(pf.netdev, pf.device, order);
}

std::vector<AlignedRail> AlignRails(const Nodes& nodes, bool all_pfs, const Fabric* present,
                                    Findings* findings) {
  std::vector<AlignedRail> rails;
  for (const NodeKind& kind : KindsOf(nodes)) {
    std::vector<Slot> slots = RailSlots(kind, all_pfs, present, findings);
    if (slots.size() > kMostRails) {
      findings->Contradict(
          "", "pf", kind.nodes.front()->node,
          "it has more than " + std::to_string(kMostRails) + " PFs; the others have no rail");
      slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(kMostRails), slots.end());
    }
    std::vector<std::size_t> places;
    if (rails.empty()) {
      places = FirstRails(slots.size());
      findings->guesses.push_back(
          {"/rails", "", "rails", std::to_string(slots.size()),
           "the PFs with RDMA in PCI order on " + reachability::FoldedNames(NamesOf(kind.nodes)),
           Certainty::kMedium});
    } else {
      places = RailsOfKind(kind, slots, rails, present, findings);
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      while (rails.size() <= places[i]) rails.push_back({"rail" + std::to_string(rails.size()), {}});
      AddSlot(kind, slots[i], &rails[places[i]], findings);
    }
    NameAdditionalPfs(kind, findings);
  }
  // In the order of the nodes.
  for (AlignedRail& rail : rails) {
    std::ranges::sort(rail.members, [&](const RailMember& one, const RailMember& other) {
      return std::ranges::find(nodes, one.node) < std::ranges::find(nodes, other.node);
    });
  }
  return rails;
}

}  // namespace railhead::fabric_suggest
