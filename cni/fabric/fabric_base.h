// FabricBase: fabric.json as people write it, equal on all nodes; and the fabric of one node, which follows
// from it and the node's name alone.
//
// Every group that has the node is merged over the base. Objects are merged key by key, lists replace, null
// removes, and `false` takes a rail away. Two groups that give one key of one node different values are an
// error that names both. So the order of groups means nothing. A rail keeps its place in the base, and so its
// table.
//
// A group with `indices` that gives a rail a subnet divides that subnet among those indices: the node's
// position in it is its index less the first. A base without groups is the fabric of each node. Threads: an
// immutable value; pure functions. Errors: kInvalid and kMalformed, with the JSON pointer, the node and its
// groups.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/fabric/node_group.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead {

// A value that a node has from a group.
struct GroupValue {
  std::string pointer;  // "/rails/rail0/subnet": rails by name
  std::string value;    // JSON
  std::string group;

  static void List(auto& f) {
    f("pointer", &GroupValue::pointer, {.column = "KEY"});
    f("value", &GroupValue::value, {.column = "VALUE"});
    f("group", &GroupValue::group, {.column = "GROUP"});
  }
};

class FabricBase {
 public:
  // `what` names the text in errors, of which the result has the first and `all` gets all. The base by itself
  // and the form of its groups have to be valid. What a group makes of the base is checked where it is made.
  static Result<FabricBase> Parse(const std::string& text, const std::string& what,
                                  std::vector<Error>* all = nullptr);

  FabricBase(FabricBase&&) noexcept;
  FabricBase& operator=(FabricBase&&) noexcept;
  ~FabricBase();

  // Of a node that no group has; it has the groups.
  [[nodiscard]] const Fabric& fabric() const;
  [[nodiscard]] std::vector<const NodeGroup*> GroupsOf(const std::string& node) const;
  // The text of the node's fabric; without groups the base's own.
  [[nodiscard]] Result<std::string> TextOf(const std::string& node) const;
  // Of a node with that group alone. Its `nodes` are those that the group has.
  [[nodiscard]] Result<std::string> TextOfGroup(const NodeGroup& group) const;
  [[nodiscard]] Result<Fabric> FabricOf(const std::string& node) const;
  // What the node's groups change, by pointer. Empty where they contradict each other.
  [[nodiscard]] std::vector<GroupValue> ValuesOf(const std::string& node) const;
  // The text, the node and its groups, as errors name them.
  [[nodiscard]] std::string PlaceOf(const std::string& node) const;

  // Whether the node's groups have the index that `nodes` lists for it, if it does.
  [[nodiscard]] Result<void> CheckIndex(const std::string& node) const;
  // Subnets of groups that have no indices to divide them, or that overlap: nodes could give one address
  // twice. Groups that are invalid over the base are left out.
  [[nodiscard]] std::vector<Error> SubnetConflicts() const;

 private:
  struct Parts;
  [[nodiscard]] Result<std::string> Merge(const std::vector<const NodeGroup*>& groups,
                                          const std::string& node) const;
  explicit FabricBase(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// The fabric of `node` by a text that may have groups.
Result<Fabric> ParseFabricOf(const std::string& node, const std::string& text, const std::string& what);

}  // namespace railhead
