#include "cni/fabric/add_refusals.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "cni/protocol/cni_request.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr const char* kNodesName = "; the name comes from /etc/railhead/node-name, else it is the host name";

Error BeyondBlocks(const Rail& rail, int index) {
  // An int has at most 31 bits, so RangesOf() has a block for each index of a larger difference.
  // A group's own indices begin at another number.
  const std::string blocks = std::to_string(std::uint64_t{1} << (*rail.PartLength() - rail.subnet->length));
  return {
      ErrorCode::kInvalid,
      "index " + std::to_string(index) + " is beyond the " + blocks + " blocks of " + rail.subnet->ToString(),
      "give the node an unused index below " + blocks +
          " in nodes, or the rail a larger subnet or smaller blocks",
      0};
}

Error WithoutIndex(const Fabric& fabric, const std::string& node) {
  const std::string hint = "list the node in nodes with an unused index";
  if (!fabric.nodes.empty())
    return {ErrorCode::kInvalid, "'nodes' does not list '" + node + "'", hint + kNodesName, 0};
  return {ErrorCode::kInvalid,
          "nodes have no index: the fabric has neither 'nodes' nor addresses.index.from kubernetes", hint, 0};
}

// With the groups of the node; "": the fabric has none.
std::string GroupsOf(const Fabric& fabric) {
  if (!fabric.of_node) return "";
  if (fabric.of_node->groups.empty()) return "; node '" + fabric.of_node->name + "' is in no group";
  return "; node '" + fabric.of_node->name + "' is in " +
         (fabric.of_node->groups.size() == 1 ? "group " : "groups ") + Join(fabric.of_node->groups, ", ");
}

Error OutsideIndices(const Fabric& fabric, const Rail& rail, int index) {
  return {
      ErrorCode::kInvalid,
      "index " + std::to_string(index) + " is not one of " + rail.indices->ToString() + ", which divide " +
          rail.subnet->ToString() + GroupsOf(fabric),
      fabric.ClaimsIndices()
          ? "wait until railheadd has claimed another index (railctl status); or change the group's `nodes`"
          : "give the node one of these indices in nodes, or change the group's `nodes`",
      0};
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string NameFault(const Fabric& fabric, const std::string& name) {
  if (name == "lo") return "each pod has an interface lo already";
  if (name == "eth0") return "pods have an interface eth0 already, of the cluster's default network";
  if (!IsInterfaceName(name)) return "'" + name + "' is not an interface name";
  if (const std::string second = name + "-1"; !IsInterfaceName(second))
    return "'" + second + "', of a second device of the rail, is not an interface name";
  if (name.starts_with("nic") && IsNumber(name.substr(3)))
    return "a NIC without a rail is also called " + name;
  const auto dash = name.rfind('-');
  if (dash != std::string::npos && IsNumber(name.substr(dash + 1)) &&
      fabric.FindRail(name.substr(0, dash)) != nullptr)
    return "a further device of rail " + name.substr(0, dash) + " is also called " + name;
  return "";
}

}  // namespace

bool DividesNothing(const Rail& rail) {
  return rail.subnet && rail.node_ranges.empty() && !rail.PartLength();
}

Error WhyNoSubnet(const Fabric& fabric) {
  return {ErrorCode::kInvalid, "has no subnet" + GroupsOf(fabric),
          fabric.of_node ? "give `subnet` to the rail, or to a group that has the node"
                         : "add 'subnet' to the rail",
          0};
}

Error WhyNoRange(const Fabric& fabric, const Rail& rail, const std::string& node,
                 std::optional<int> node_index) {
  const auto index = rail.index ? rail.index : node_index;
  if (rail.PartLength() && index && !rail.PositionOf(*index)) return OutsideIndices(fabric, rail, *index);
  if (rail.PartLength() && index) return BeyondBlocks(rail, *index);
  if (rail.PartLength()) return WithoutIndex(fabric, node);
  if (!rail.node_ranges.empty()) {
    return {ErrorCode::kInvalid,
            index ? "nodeRanges has neither '" + node + "' nor its index " + std::to_string(*index)
                  : "nodeRanges does not have '" + node + "', which has no index",
            std::string("add the node to nodeRanges by its name or index") + kNodesName, 0};
  }
  return {ErrorCode::kInvalid, "nothing divides its subnet among the nodes",
          "give the rail a nodeBlock or nodeSubnet, and each node its index in nodes or by "
          "addresses.index.from kubernetes; or "
          "nodeRanges",
          0};
}

Result<void> CheckGatewayIn(const Rail& rail, const IpPrefix& network) {
  if (!rail.gateway || rail.GatewayOf(network)) return {};
  return Fail(
      ErrorCode::kInvalid,
      "its gateway " + rail.gateway->ToString() + " is outside the node's network " + network.ToString(),
      "write first, last or other, which are in each node's own network");
}

std::optional<Error> WhyNoInterfaceName(const Fabric& fabric, const Rail& rail) {
  const std::string fault = NameFault(fabric, rail.name);
  if (fault.empty()) return std::nullopt;
  return Error{
      ErrorCode::kInvalid, "interfaces cannot be named after the rail: " + fault,
      "give the rail a name of at most 13 characters, such as rail0; any name does where each network "
      "has one device",
      0};
}

}  // namespace railhead
