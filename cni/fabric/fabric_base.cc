#include "cni/fabric/fabric_base.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cni/fabric/fabric_shape.h"
#include "cni/fabric/node_pattern.h"
#include "cni/fabric/rail_routes.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

using Json = nlohmann::ordered_json;
using Groups = std::vector<const NodeGroup*>;

std::string NamesOf(const Groups& groups) {
  std::vector<std::string> names;
  for (const NodeGroup* group : groups) names.push_back("'" + group->name + "'");
  return Join(names, ", ");
}

// What several groups change, as one tree. Who gives a value is remembered by its pointer.
class Overrides {
 public:
  Result<void> Add(const NodeGroup& group) {
    for (const auto& [key, text] : group.overrides)
      RH_TRY(Add(tree_, "/" + EscapePointer(key), key, Json::parse(text), group));
    return {};
  }

  [[nodiscard]] const Json& tree() const { return tree_; }
  [[nodiscard]] std::vector<GroupValue> Values() const {
    std::vector<GroupValue> values;
    for (const auto& [pointer, giver] : givers_) {
      const Json& value = tree_.at(Json::json_pointer(pointer));
      if (!value.is_object() || value.empty()) values.push_back({pointer, value.dump(), giver->name});
    }
    return values;
  }
  // nullptr: no group gives it.
  [[nodiscard]] const NodeGroup* GiverOf(const std::string& pointer) const {
    const auto found = givers_.find(pointer);
    return found == givers_.end() ? nullptr : found->second;
  }

 private:
  Result<void> Add(Json& into, const std::string& pointer, const std::string& key, const Json& value,
                   const NodeGroup& group) {
    const auto there = into.find(key);
    if (there == into.end()) {
      Set(into[key], pointer, value, group);
      return {};
    }
    if (there->is_object() && value.is_object()) {
      for (const auto& [name, one] : value.items())
        RH_TRY(Add(*there, pointer + "/" + EscapePointer(name), name, one, group));
      return {};
    }
    if (*there == value) return {};
    return Fail(ErrorCode::kInvalid,
                "groups " + NamesOf({givers_.at(pointer), &group}) + " give " + pointer + " different values",
                "give it in one of them, or let no node be in both");
  }

  void Set(Json& into, const std::string& pointer, const Json& value, const NodeGroup& group) {
    givers_.emplace(pointer, &group);
    into = value;
    if (!value.is_object()) return;
    for (const auto& [name, one] : value.items())
      Set(into[name], pointer + "/" + EscapePointer(name), one, group);
  }

  Json tree_ = Json::object();
  std::map<std::string, const NodeGroup*> givers_;
};

void Apply(const Json& changes, Json& to) {
  for (const auto& [key, value] : changes.items()) {
    if (value.is_null()) {
      to.erase(key);
    } else if (value.is_object()) {
      Json& inner = to[key];
      if (!inner.is_object()) inner = Json::object();
      Apply(value, inner);
    } else {
      to[key] = value;
    }
  }
}

bool IsWritten(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

using RailSubnets = std::map<std::string, std::vector<IpPrefix>>;  // by rail name

// Each rail's subnets on all nodes: the base's, and those that groups give.
RailSubnets SubnetsOfRails(const Fabric& fabric) {
  RailSubnets subnets;
  for (const Rail& rail : fabric.rails) subnets[rail.name] = SubnetsOf(rail);
  for (const NodeGroup& group : fabric.node_groups) {
    const auto changes = group.overrides.find("rails");
    if (changes == group.overrides.end()) continue;
    const Json rails = Json::parse(changes->second);
    for (const auto& [name, change] : rails.items()) {
      const auto subnet = change.is_object() ? change.find("subnet") : change.end();
      if (!change.is_object() || subnet == change.end() || !subnet->is_string()) continue;
      if (const auto prefix = IpPrefix::Parse(subnet->get<std::string>()))
        subnets[name].push_back(prefix->Network());
    }
  }
  for (auto& [rail, prefixes] : subnets) prefixes = FewestPrefixes(std::move(prefixes));
  return subnets;
}

// A rail's table follows from its place in the base, also where a group takes away a rail before it.
Json RailsOf(const Json& rails, const Overrides& overrides, const RailSubnets& subnets) {
  const Json none = Json::object();
  const auto changes = overrides.tree().find("rails");
  Json result = Json::array();
  for (std::size_t i = 0; i < rails.size(); ++i) {
    Json rail = rails[i];
    const std::string name = rail.value("name", "");
    const Json& change =
        changes != overrides.tree().end() && changes->contains(name) ? (*changes)[name] : none;
    if (change.is_boolean()) continue;
    Apply(change, rail);
    const NodeGroup* giver = overrides.GiverOf("/rails/" + EscapePointer(name) + "/subnet");
    if (giver != nullptr && giver->indices) rail["indices"] = giver->indices->ToString();
    Json all = ToJson(subnets.at(name));
    const bool are_own = all.size() == 1 && IsWritten(rail, "subnet") && rail["subnet"] == all[0];
    if (!all.empty() && !are_own) rail["fabricSubnets"] = std::move(all);
    if (result.size() != i && !IsWritten(rail, "table")) rail["table"] = kFirstRailTable + i;
    result.push_back(std::move(rail));
  }
  return result;
}

// The groups' indices, in their order, the adjacent ones as one.
std::vector<IndexRange> ReservedBy(const std::vector<NodeGroup>& groups) {
  std::vector<IndexRange> all;
  for (const NodeGroup& group : groups) {
    if (group.indices) all.push_back(*group.indices);
  }
  std::ranges::sort(all, {}, &IndexRange::first);
  std::vector<IndexRange> joined;
  for (const IndexRange& range : all) {
    if (joined.empty() || range.first - 1 > joined.back().last) {
      joined.push_back(range);
    } else {
      joined.back().last = std::max(joined.back().last, range.last);
    }
  }
  return joined;
}

// One range for the node: its groups' ranges are apart from each other, so two of them contradict.
Result<std::optional<IndexRange>> IndicesOf(const Groups& groups) {
  const NodeGroup* giver = nullptr;
  for (const NodeGroup* group : groups) {
    if (!group->indices) continue;
    if (giver != nullptr) {
      return Fail(
          ErrorCode::kInvalid,
          "groups " + NamesOf({giver, group}) + " give it different indices, and a node has one index",
          "let no node be in both, or leave `indices` out of one of them");
    }
    giver = group;
  }
  return giver == nullptr ? std::nullopt : giver->indices;
}

}  // namespace

bool NodeGroup::Has(std::string_view node) const {
  return std::ranges::any_of(nodes,
                             [&](const std::string& pattern) { return MatchesNodePattern(pattern, node); });
}

bool FabricNode::MayHave(int index) const {
  if (indices) return indices->Contains(index);
  return std::ranges::none_of(reserved, [&](const IndexRange& range) { return range.Contains(index); });
}

struct FabricBase::Parts {
  std::string what;
  std::string text;
  Fabric fabric;
  Json json;  // without the groups
  RailSubnets subnets;
};

FabricBase::FabricBase(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
FabricBase::FabricBase(FabricBase&&) noexcept = default;
FabricBase& FabricBase::operator=(FabricBase&&) noexcept = default;
FabricBase::~FabricBase() = default;

Result<FabricBase> FabricBase::Parse(const std::string& text, const std::string& what,
                                     std::vector<Error>* all) {
  auto parts = std::make_unique<Parts>();
  parts->fabric = RH_TRY(ParseFabric(text, what, all));
  parts->what = what;
  parts->text = text;
  // What has been read is JSON.
  parts->json = Json::parse(text, nullptr, false);
  parts->json.erase("nodeGroups");
  parts->subnets = SubnetsOfRails(parts->fabric);
  return FabricBase(std::move(parts));
}

const Fabric& FabricBase::fabric() const {
  return parts_->fabric;
}

std::vector<const NodeGroup*> FabricBase::GroupsOf(const std::string& node) const {
  std::vector<const NodeGroup*> groups;
  for (const NodeGroup& group : parts_->fabric.node_groups) {
    if (group.Has(node)) groups.push_back(&group);
  }
  return groups;
}

std::string FabricBase::PlaceOf(const std::string& node) const {
  const Groups groups = GroupsOf(node);
  std::string place = parts_->what + ", node '" + node + "'";
  if (!groups.empty()) place += (groups.size() == 1 ? " with group " : " with groups ") + NamesOf(groups);
  return place;
}

Result<std::string> FabricBase::TextOf(const std::string& node) const {
  if (parts_->fabric.node_groups.empty()) return parts_->text;
  return RH_TRY_WRAP(Merge(GroupsOf(node), node), PlaceOf(node));
}

Result<Fabric> FabricBase::FabricOf(const std::string& node) const {
  if (parts_->fabric.node_groups.empty()) return parts_->fabric;
  RH_TRY(CheckIndex(node));
  const std::string text = RH_TRY(TextOf(node));
  return ParseFabric(text, PlaceOf(node));
}

Result<std::string> FabricBase::TextOfGroup(const NodeGroup& group) const {
  Json json = Json::parse(RH_TRY(Merge({&group}, group.name)));
  // 300 groups with all of 10,000 nodes would take seconds to read.
  Json nodes = Json::object();
  for (const auto& [node, index] : parts_->fabric.nodes) {
    if (group.Has(node)) nodes[node] = index;
  }
  json["nodes"] = std::move(nodes);
  return record::Dump(json) + "\n";
}

Result<std::string> FabricBase::Merge(const Groups& groups, const std::string& node) const {
  Overrides overrides;
  for (const NodeGroup* group : groups) RH_TRY(overrides.Add(*group));
  FabricNode of;
  of.name = node;
  of.indices = RH_TRY(IndicesOf(groups));
  if (!of.indices) of.reserved = ReservedBy(parts_->fabric.node_groups);
  for (const NodeGroup* group : groups) of.groups.push_back(group->name);
  Json merged = parts_->json;
  Json changes = overrides.tree();
  changes.erase("rails");
  Apply(changes, merged);
  merged["rails"] = RailsOf(parts_->json["rails"], overrides, parts_->subnets);
  merged["node"] = ToJson(of);
  return record::Dump(merged, 2) + "\n";
}

std::vector<GroupValue> FabricBase::ValuesOf(const std::string& node) const {
  Overrides overrides;
  for (const NodeGroup* group : GroupsOf(node)) {
    if (!overrides.Add(*group)) return {};
  }
  return overrides.Values();
}

Result<void> FabricBase::CheckIndex(const std::string& node) const {
  const auto listed = parts_->fabric.IndexOf(node);
  if (!listed) return {};
  const std::string index = PlaceOf(node) + ": index " + std::to_string(*listed) + " in nodes ";
  bool has_indices = false;
  for (const NodeGroup* group : GroupsOf(node)) {
    has_indices = has_indices || group->indices;
    if (!group->indices || group->indices->Contains(*listed)) continue;
    return Fail(ErrorCode::kInvalid,
                index + "is not one of group '" + group->name + "', " + group->indices->ToString(),
                "give the node one of these, or take it out of the group");
  }
  if (has_indices) return {};
  for (const NodeGroup& group : parts_->fabric.node_groups) {
    if (group.indices && group.indices->Contains(*listed))
      return Fail(ErrorCode::kInvalid,
                  index + "is one of group '" + group.name + "', which does not have the node",
                  "give the node another index, or the group a pattern that matches it");
  }
  return {};
}

namespace {

// Whether the rail divides its subnet by nodes' indices.
bool IsDivided(const Rail& rail) {
  return rail.UsesIndex() || rail.probe_range;
}

struct GivenSubnet {
  const NodeGroup* giver;  // nullptr: the base
  std::string rail;
  IpPrefix subnet;
};

bool Overlap(const IpPrefix& a, const IpPrefix& b) {
  return a.address.IsV6() == b.address.IsV6() && (a.Contains(b.address) || b.Contains(a.address));
}

// The subnets that the group itself gives, by rail.
std::map<std::string, IpPrefix> SubnetsOf(const FabricBase& base, const NodeGroup& group) {
  std::map<std::string, IpPrefix> subnets;
  Overrides own;
  const auto text = own.Add(group) ? base.TextOfGroup(group) : Result<std::string>();
  const auto fabric = text ? ParseFabric(*text, group.name) : Result<Fabric>(Fail(text.error()));
  if (!fabric) return subnets;
  for (const Rail& rail : fabric->rails) {
    if (own.GiverOf("/rails/" + EscapePointer(rail.name) + "/subnet") != nullptr && rail.subnet &&
        IsDivided(rail))
      subnets.emplace(rail.name, *rail.subnet);
  }
  return subnets;
}

std::string NameOf(const NodeGroup* giver) {
  return giver == nullptr ? "the base" : "group '" + giver->name + "'";
}

}  // namespace

std::vector<Error> FabricBase::SubnetConflicts() const {
  std::vector<Error> errors;
  const auto complain = [&](const std::string& at, const std::string& why, const std::string& hint) {
    errors.push_back({ErrorCode::kInvalid, parts_->what + ": /" + at + ": " + why, hint, 0});
  };
  std::vector<GivenSubnet> given;
  for (const Rail& rail : parts_->fabric.rails) {
    if (rail.subnet && IsDivided(rail)) given.push_back({nullptr, rail.name, *rail.subnet});
  }
  for (std::size_t i = 0; i < parts_->fabric.node_groups.size(); ++i) {
    const NodeGroup& group = parts_->fabric.node_groups[i];
    for (const auto& [rail, subnet] : SubnetsOf(*this, group)) {
      const std::string at = PointerOf("nodeGroups", i, "rails", rail, "subnet");
      if (!group.indices)
        complain(at, "needs the group's `indices`, by which its nodes divide it",
                 R"(for example "indices": "32-63" for 32 nodes)");
      for (const GivenSubnet& other : given) {
        if (other.giver == &group || !Overlap(other.subnet, subnet)) continue;
        complain(at,
                 subnet.ToString() + " overlaps " + other.subnet.ToString() + " of rail '" + other.rail +
                     "' of " + NameOf(other.giver),
                 "two nodes could give one address: give each its own subnet");
      }
      given.push_back({&group, rail, subnet});
    }
  }
  return errors;
}

Result<Fabric> ParseFabricOf(const std::string& node, const std::string& text, const std::string& what) {
  const FabricBase base = RH_TRY(FabricBase::Parse(text, what));
  return base.FabricOf(node);
}

}  // namespace railhead
