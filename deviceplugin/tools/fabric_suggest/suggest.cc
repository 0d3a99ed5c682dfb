#include "deviceplugin/tools/fabric_suggest/suggest.h"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/fabric/fabric_shape.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "deviceplugin/services/reachability/folded_names.h"
#include "deviceplugin/tools/fabric_suggest/capacity.h"
#include "deviceplugin/tools/fabric_suggest/present.h"
#include "deviceplugin/tools/fabric_suggest/rail_fields.h"
#include "deviceplugin/tools/fabric_suggest/rails.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::fabric_suggest {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWidestSupernet = 8;
constexpr std::size_t kMostPosition = 255;

// Of two observations of one node the later; then one that does not depend on their order. Names as the
// fabric will have them.
std::vector<NodeObservation> Distinct(const std::vector<NodeObservation>& observations) {
  std::map<std::string, std::pair<NodeObservation, std::string>> latest;  // and its text
  for (const NodeObservation& one : observations) {
    const std::string name = record::Readable(one.node);
    std::string text = record::Dump(ToJson(one));
    const auto known = latest.find(name);
    if (known != latest.end() &&
        std::pair(known->second.first.time, known->second.second) >= std::pair(one.time, text))
      continue;
    const auto at = latest.insert_or_assign(name, std::pair(one, std::move(text))).first;
    at->second.first.node = name;
  }
  std::vector<NodeObservation> distinct;
  distinct.reserve(latest.size());
  for (auto& [name, one] : latest) distinct.push_back(std::move(one.first));
  std::ranges::sort(distinct, reachability::NaturallyLess, &NodeObservation::node);
  return distinct;
}

// Whether other nodes have the PF as their PF of the rail. On this node it may lack its RDMA device.
bool IsPfOf(const AlignedRail& rail, const NodeObservation* node, const ObservedPf& pf) {
  const ObservedPf* own = rail.Of(node);
  if (own != nullptr) return own == &pf;
  return std::ranges::any_of(rail.members,
                             [&](const RailMember& one) { return one.pf->device == pf.device; });
}

// Whether the fabric finds each rail's PF on each node, and no rail for other PFs.
bool FindsPfs(const std::vector<Rail>& rails, const std::vector<AlignedRail>& aligned, const Nodes& nodes) {
  Fabric fabric;
  fabric.rails = rails;
  for (const NodeObservation* node : nodes) {
    std::vector<std::string> order;
    order.reserve(node->pfs.size());
    for (const ObservedPf& pf : node->pfs) order.push_back(pf.device);
    for (const ObservedPf& pf : node->pfs) {
      const Rail* found = fabric.RailOfPf(pf.netdev, pf.device, order);
      if (found == nullptr) {
        if (std::ranges::any_of(aligned, [&](const AlignedRail& one) { return one.Of(node) == &pf; }))
          return false;
      } else if (!IsPfOf(aligned[static_cast<std::size_t>(found - fabric.rails.data())], node, pf)) {
        return false;
      }
    }
  }
  return true;
}

// Several if nodes differ.
std::vector<std::string> ValuesOf(const AlignedRail& rail, std::string ObservedPf::*field) {
  std::vector<std::string> values;
  for (const RailMember& member : rail.members) {
    if (!Contains(values, member.pf->*field)) values.push_back(member.pf->*field);
  }
  return values;
}

std::optional<int> PositionOf(const AlignedRail& rail) {
  std::set<std::size_t> positions;
  for (const RailMember& member : rail.members)
    positions.insert(static_cast<std::size_t>(member.pf - member.node->pfs.data()));
  if (positions.size() != 1 || *positions.begin() > kMostPosition) return std::nullopt;
  return static_cast<int>(*positions.begin());
}

void SetPf(const AlignedRail& aligned, std::string ObservedPf::*field, Rail* rail) {
  rail->pfs = ValuesOf(aligned, field);
  rail->position.reset();
}

// Names if all nodes have them. Else addresses, else positions. Rails of the present fabric keep what they
// have.
void SetPfs(const std::vector<AlignedRail>& all, const Nodes& nodes, Draft* draft, Findings* findings) {
  const auto kept = static_cast<std::ptrdiff_t>(draft->kept);
  const std::vector<AlignedRail> aligned(all.begin() + kept, all.end());
  std::vector<Rail>* const rails = &draft->fabric.rails;
  std::vector<Rail> named(rails->begin() + kept, rails->end());
  std::vector<Rail> placed = named;
  std::vector<Rail> counted = named;
  bool all_named = true;
  bool all_counted = true;
  for (std::size_t i = 0; i < aligned.size(); ++i) {
    SetPf(aligned[i], &ObservedPf::netdev, &named[i]);
    all_named = all_named && !Contains(named[i].pfs, "");
    SetPf(aligned[i], &ObservedPf::device, &placed[i]);
    counted[i].position = PositionOf(aligned[i]);
    all_counted = all_counted && counted[i].position;
  }
  std::string reason = "the names of the PFs' netdevs, the same on all nodes";
  Certainty certainty = nodes.size() > 1 ? Certainty::kHigh : Certainty::kMedium;
  if (nodes.size() == 1) reason = "the names of the PFs' netdevs; other nodes may have other names";
  if (all_named && FindsPfs(named, aligned, nodes)) {
    std::ranges::move(named, rails->begin() + kept);
  } else if (FindsPfs(placed, aligned, nodes)) {
    std::ranges::move(placed, rails->begin() + kept);
    reason = "the PCI addresses, since the netdevs' names do not tell the PFs apart on all nodes";
  } else if (all_counted && FindsPfs(counted, aligned, nodes)) {
    std::ranges::move(counted, rails->begin() + kept);
    reason = "the positions, since neither names nor PCI addresses fit all nodes";
    certainty = Certainty::kMedium;
  } else {
    std::ranges::move(placed, rails->begin() + kept);
    reason = "the PCI addresses, which do not fit all nodes";
    certainty = Certainty::kLow;
    findings->Contradict("", "pf", "",
                         "neither names, PCI addresses nor positions give each rail its PF on all nodes");
  }
  for (std::size_t i = draft->kept; i < rails->size(); ++i) {
    const Rail& rail = (*rails)[i];
    findings->guesses.push_back({"/rails/" + std::to_string(i) + "/pf", rail.name, "pf",
                                 rail.position ? std::to_string(*rail.position) : Join(rail.pfs, ", "),
                                 reason, certainty});
  }
}

// Prefixes of the supernet for the rails that are not kept, as many as fit.
std::vector<IpPrefix> SubnetsIn(const SuggestOptions& options, const Draft& draft) {
  const std::size_t count = draft.fabric.rails.size() - draft.kept;
  std::vector<IpPrefix> subnets;
  if (!options.supernet) return subnets;
  const IpPrefix& all = *options.supernet;
  const auto bits = static_cast<int>(std::bit_width(std::max<std::size_t>(draft.fabric.rails.size(), 1) - 1));
  const int length = options.rail_prefix.value_or(all.length + bits);
  if (length > all.address.Bits() - 2) return subnets;
  for (IpPrefix next{all.First(), length}; subnets.size() < count && all.Contains(next);) {
    const auto taken = std::ranges::find_if(
        draft.fabric.rails, [&](const Rail& rail) { return rail.subnet && rail.subnet->Overlaps(next); });
    if (taken == draft.fabric.rails.end()) subnets.push_back(next);
    // Behind the larger of the two.
    const IpAddress last =
        taken == draft.fabric.rails.end() ? next.Last() : std::max(next.Last(), taken->subnet->Last());
    const IpAddress after = last.Plus(1);
    if (after < next.address) break;  // the end of all addresses
    next.address = after;
  }
  return subnets;
}

// Two rails with one subnet would give the same addresses: only the first keeps it.
void SeparateSubnets(Draft* draft, Findings* findings) {
  std::vector<Rail>* const rails = &draft->fabric.rails;
  for (std::size_t i = draft->kept; i < rails->size(); ++i) {
    Rail& rail = (*rails)[i];
    for (std::size_t j = 0; j < i && rail.subnet; ++j) {
      const Rail& other = (*rails)[j];
      if (!other.subnet || !other.subnet->Overlaps(*rail.subnet)) continue;
      findings->Contradict(rail.name, "subnet", "",
                           "its subnet " + rail.subnet->ToString() + " overlaps the one of " + other.name +
                               ": both would give the same addresses; --supernet gives each rail its own");
      rail.subnet.reset();
      rail.gateway.reset();
      rail.routes.clear();
      rail.exclude.clear();
      const std::string at = "/rails/" + std::to_string(i) + "/";
      std::erase_if(findings->guesses, [&](const Guess& guess) {
        return Contains(
            std::vector<std::string>{at + "subnet", at + "gateway", at + "routes", at + "exclude"},
            guess.field);
      });
    }
  }
}

// Only what is not a default.
Json RailJson(const Rail& rail) {
  Json json{{"name", rail.name}, {"pf", PfForm::Write(rail)}};
  if (rail.vlan) json["vlan"] = *rail.vlan;
  if (rail.soft_roce) json["softRoce"] = true;
  if (rail.mtu) json["mtu"] = *rail.mtu;
  if (rail.subnet) json["subnet"] = ToJson(*rail.subnet);
  if (rail.gateway) json["gateway"] = ToJson(*rail.gateway);
  if (!rail.routes.empty()) json["routes"] = ToJson(rail.routes);
  if (!rail.exclude.empty()) json["exclude"] = ToJson(rail.exclude);
  if (rail.node_block) json["nodeBlock"] = *rail.node_block;
  if (rail.table != 0) json["table"] = rail.table;
  if (!rail.expected_switches.empty()) json["expectedSwitches"] = ToJson(rail.expected_switches);
  return json;
}

// The present fabric, with the rails and nodes that it lacks.
std::string ExtendedText(const std::string& present, const Draft& draft) {
  Json json = Json::parse(present);
  for (std::size_t i = draft.kept; i < draft.fabric.rails.size(); ++i)
    json["rails"].push_back(RailJson(draft.fabric.rails[i]));
  for (const auto& [name, number] : draft.fabric.nodes) json["nodes"][name] = number;
  return record::Dump(json, 2) + "\n";
}

std::string FabricText(const Draft& draft) {
  Json json{{"version", 1}};
  if (!draft.fabric.nodes.empty()) {
    // In the order of their numbers.
    std::vector<std::pair<std::string, int>> nodes(draft.fabric.nodes.begin(), draft.fabric.nodes.end());
    std::ranges::sort(nodes, {}, &std::pair<std::string, int>::second);
    json["nodes"] = ToJson(nodes);
  }
  for (const Rail& rail : draft.fabric.rails) json["rails"].push_back(RailJson(rail));
  for (const Pool& pool : draft.fabric.pools) {
    Json one{{"resource", pool.resource}, {"rails", pool.rails}};
    if (pool.device == PoolDevice::kPf) one["device"] = WordOf(pool.device);
    json["pools"].push_back(std::move(one));
  }
  if (draft.vfs) json["provision"]["vfs"] = *draft.vfs;
  for (const auto& [name, vfs] : draft.own) json["provision"]["rails"][name]["vfs"] = vfs;
  return record::Dump(json, 2) + "\n";
}

}  // namespace

Result<void> CheckOptions(const SuggestOptions& options) {
  if (options.rail_prefix && !options.supernet)
    return Fail(ErrorCode::kInvalid, "--rail-prefix needs --supernet");
  if (!options.supernet) return {};
  const IpPrefix& supernet = *options.supernet;
  if (supernet.length < kWidestSupernet) {
    return Fail(ErrorCode::kInvalid, "--supernet " + supernet.ToString() + " is wider than /8",
                "for example 10.104.0.0/13");
  }
  if (supernet.Network() != supernet) {
    return Fail(ErrorCode::kInvalid, "--supernet " + supernet.ToString() + " has host bits set",
                "write " + supernet.Network().ToString());
  }
  if (!options.rail_prefix) return {};
  const int most = supernet.address.Bits() - 2;
  if (*options.rail_prefix < supernet.length || *options.rail_prefix > most) {
    return Fail(
        ErrorCode::kInvalid,
        "--rail-prefix " + std::to_string(*options.rail_prefix) + " does not divide " + supernet.ToString(),
        "a length from " + std::to_string(supernet.length) + " to " + std::to_string(most));
  }
  return {};
}

namespace {

// railheadd gives the PF its RDMA device.
void AllowSoftRoce(const Fabric& present, std::vector<NodeObservation>* nodes) {
  for (NodeObservation& node : *nodes) {
    for (ObservedPf& pf : node.pfs) {
      const Rail* rail = RailInFabric(&present, node, pf);
      pf.soft_roce = pf.soft_roce || (rail != nullptr && rail->soft_roce);
    }
  }
}

// The VFs that the present fabric wants.
void ReadVfs(const Fabric& present, const std::vector<AlignedRail>& aligned, Draft* draft) {
  const auto read = provision::ReadProvisionSettings(present, "the present fabric");
  if (!read || !*read) return;
  draft->vfs = (*read)->all.vfs;
  for (const AlignedRail& rail : aligned) {
    const provision::PfSettings& settings = (*read)->Of(rail.name);
    if (settings.vfs) draft->own[rail.name] = *settings.vfs;
    if (!settings.all_vfs) continue;
    for (const RailMember& member : rail.members)
      draft->own[rail.name] = std::max(draft->own[rail.name], member.pf->most_vfs);
  }
}

// The present fabric's rails, and the others with their names.
Draft MakeDraft(const SuggestOptions& options, const Fabric* present,
                const std::vector<AlignedRail>& aligned) {
  Draft draft;
  if (present != nullptr) {
    const Json json = Json::parse(options.present);
    draft.fabric = *present;
    draft.kept = present->rails.size();
    ReadVfs(*present, aligned, &draft);
    // A pool without rails has all of them.
    const Json pools = json.value("pools", Json::array());
    const auto has_all = [](const Json& pool) { return !pool.contains("rails") || pool["rails"].is_null(); };
    if (pools.empty() || std::ranges::any_of(pools, has_all)) draft.fabric.pools.clear();
  }
  std::set<std::uint32_t> tables;
  for (const Rail& rail : draft.fabric.rails) tables.insert(rail.table);
  for (std::size_t i = draft.kept; i < aligned.size(); ++i) {
    Rail rail{.name = aligned[i].name};
    std::uint32_t table = kFirstRailTable + static_cast<std::uint32_t>(i);
    if (tables.contains(table)) {
      while (tables.contains(table)) ++table;
      rail.table = table;
    }
    tables.insert(table);
    draft.fabric.rails.push_back(std::move(rail));
  }
  return draft;
}

// A kept rail: what its nodes show otherwise, and where they differ.
void CompareKept(const AlignedRail& aligned, std::size_t number, const Cables& cables, const Rail& rail,
                 Findings* findings) {
  Rail shown{.name = rail.name};
  Findings of_rail;
  SetRailFields(aligned, number, cables, {}, std::nullopt, &shown, &of_rail);
  for (Contradiction& one : of_rail.contradictions) findings->contradictions.push_back(std::move(one));
  CompareRail(rail, shown, cables.switches[number], findings);
}

}  // namespace

Suggestion Suggest(const std::vector<NodeObservation>& observations, const SuggestOptions& options) {
  std::vector<NodeObservation> distinct = Distinct(observations);
  std::optional<Fabric> present;
  if (auto parsed = ParseFabric(options.present, "the present fabric")) present = *std::move(parsed);
  if (present) AllowSoftRoce(*present, &distinct);
  Nodes nodes;
  nodes.reserve(distinct.size());
  for (const NodeObservation& one : distinct) nodes.push_back(&one);
  Findings findings;
  const Fabric* const fabric = present ? &*present : nullptr;
  auto aligned = AlignRails(nodes, options.all_pfs, fabric, &findings);
  if (aligned.empty()) return {"", std::move(findings.guesses), std::move(findings.contradictions)};
  if (present) TakeNames(*present, &aligned, &findings);
  const Cables cables = CompareCables(nodes, aligned, &findings);
  Draft draft = MakeDraft(options, fabric, aligned);
  std::vector<Rail>& rails = draft.fabric.rails;
  const std::vector<IpPrefix> subnets = SubnetsIn(options, draft);
  if (options.supernet && subnets.size() < rails.size() - draft.kept) {
    findings.Contradict("", "subnet", "",
                        options.supernet->ToString() + " has only " + std::to_string(subnets.size()) +
                            " subnets for " + std::to_string(rails.size() - draft.kept) + " rails");
  }
  if (draft.kept > 0) {
    std::vector<std::string> names;
    for (const Rail& rail : present->rails) names.push_back(rail.name);
    findings.guesses.push_back({"/rails", "", "present rails", reachability::FoldedNames(names),
                                "the fabric has them, and nothing in it is changed", Certainty::kHigh});
  }
  SetPfs(aligned, nodes, &draft, &findings);
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (i < draft.kept) {
      CompareKept(aligned[i], i, cables, rails[i], &findings);
      continue;
    }
    const std::size_t place = i - draft.kept;
    SetRailFields(aligned[i], i, cables, options,
                  place < subnets.size() ? std::optional(subnets[place]) : std::nullopt, &rails[i],
                  &findings);
  }
  SeparateSubnets(&draft, &findings);
  SetCapacity(aligned, nodes, &draft, &findings);
  return {present ? ExtendedText(options.present, draft) : FabricText(draft), std::move(findings.guesses),
          std::move(findings.contradictions)};
}

}  // namespace railhead::fabric_suggest
