#include "deviceplugin/tools/railctl/config_warnings.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "cni/fabric/add_refusals.h"
#include "deviceplugin/services/node_index/node_addresses.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::railctl {
namespace {

using Warnings = std::vector<Error>;

void WarnOfMissingIndices(const Fabric& fabric, const std::string& what, Warnings& warnings) {
  if (!fabric.UsesIndices() || !fabric.nodes.empty() || fabric.index_from_kubernetes) return;
  warnings.push_back(
      {ErrorCode::kInvalid,
       what + ": /nodes: rails give addresses by the nodes' indices, but no node has one: 'nodes' "
              "and addresses.index.from kubernetes are missing",
       "list the nodes in 'nodes', or set addresses.index.from to kubernetes", 0});
}

void WarnOfUndividedSubnets(const Fabric& fabric, const std::string& what, Warnings& warnings) {
  std::vector<std::string> rails;
  std::string pointer;
  std::optional<Error> why;
  for (std::size_t i = 0; i < fabric.rails.size(); ++i) {
    const Rail& rail = fabric.rails[i];
    if (!DividesNothing(rail)) continue;
    if (rails.empty()) pointer = "/rails/" + std::to_string(i) + "/subnet";
    if (rails.empty()) why = WhyNoRange(fabric, rail, {}, std::nullopt);
    rails.push_back(rail.name);
  }
  if (!why) return;
  warnings.push_back(
      {why->code,
       what + ": " + pointer + ": no node gives addresses of " + Join(rails, ", ") + ": " + why->message,
       why->hint, 0});
}

struct NodesWithout {
  std::string first;
  Error why;  // of the first node, on the first rail
  std::size_t others = 0;
};

// A node that `nodes` lists shall give addresses of each rail that gives any node some.
void WarnOfNodesWithoutAddresses(const Fabric& fabric, const std::string& what, Warnings& warnings) {
  std::map<std::vector<std::string>, NodesWithout> by_rails;
  for (const auto& [node, index] : fabric.nodes) {
    std::vector<std::string> rails;
    std::optional<Error> first;
    for (const Rail& rail : fabric.rails) {
      if (DividesNothing(rail)) continue;
      auto why = node_index::WhyNoAddress(fabric, rail, node, index);
      if (!why) continue;
      if (!first) first = std::move(why);
      rails.push_back(rail.name);
    }
    if (!first) continue;
    const auto [group, is_new] = by_rails.try_emplace(std::move(rails), NodesWithout{node, *first});
    if (!is_new) ++group->second.others;
  }
  for (const auto& [rails, nodes] : by_rails) {
    std::string text = what + ": /nodes/" + EscapePointer(nodes.first) + ": pods there get no address of " +
                       Join(rails, ", ") + ": " + nodes.why.message;
    if (nodes.others > 0) text += "; nor do pods of " + std::to_string(nodes.others) + " other nodes";
    warnings.push_back({nodes.why.code, std::move(text), nodes.why.hint, 0});
  }
}

Error WarningAt(const std::string& what, std::size_t rail, const char* key, const std::string& text,
                std::string hint) {
  std::string message = what;
  message.append(": /rails/").append(std::to_string(rail)).append("/").append(key).append(": ").append(text);
  return {ErrorCode::kInvalid, std::move(message), std::move(hint), 0};
}

// Where each host has a router, its pods have a network of their own.
void WarnOfNetworksPerHost(const Fabric& fabric, const std::string& what, Warnings& warnings) {
  for (std::size_t i = 0; i < fabric.rails.size(); ++i) {
    const Rail& rail = fabric.rails[i];
    if (!rail.subnet || rail.node_subnet) continue;
    const int host = rail.subnet->address.Bits() - 1;
    const std::string hint = "if each host has a router of its own: \"nodeSubnet\": " + std::to_string(host);
    if (rail.subnet->length >= host) {
      warnings.push_back(WarningAt(what, i, "subnet", rail.subnet->ToString() + " is a network of one host",
                                   hint + ", and the subnet of all hosts"));
    } else if (rail.node_block == host) {
      warnings.push_back(WarningAt(what, i, "nodeBlock",
                                   std::to_string(host) + " gives each node two addresses of " +
                                       rail.subnet->ToString() + ", and no network of its own",
                                   hint + " in place of nodeBlock"));
    }
  }
}

constexpr std::size_t kManyRoutes = 16;

// The longest prefix that has all of them, which are sorted and of one family.
IpPrefix SupernetOf(const std::vector<IpPrefix>& prefixes) {
  IpPrefix supernet = prefixes.front();
  while (!supernet.Contains(prefixes.back()))
    supernet = IpPrefix{supernet.address, supernet.length - 1}.Network();
  return supernet;
}

// Nodes of different networks meet by routes through the gateway. Each pod has all of them, twice.
void WarnOfRoutes(const Fabric& fabric, const std::string& what, Warnings& warnings) {
  for (std::size_t i = 0; i < fabric.rails.size(); ++i) {
    const Rail& rail = fabric.rails[i];
    if (rail.node_subnet && rail.subnet && !rail.gateway) {
      warnings.push_back(WarningAt(what, i, "gateway",
                                   "without a gateway, no node of " + rail.name + " reaches another one",
                                   R"(for example "gateway": "first")"));
    }
    if (rail.routes_from == RouteSource::kWritten || rail.routes.size() <= kManyRoutes) continue;
    warnings.push_back(WarningAt(
        what, i, "routes",
        "pods of " + rail.name + " get " + std::to_string(rail.routes.size()) +
            " routes, to the subnets of all nodes",
        "write one for all, for example \"routes\": [\"" + SupernetOf(rail.routes).ToString() + "\"]"));
  }
}

// Each VF of the rail may be in a pod, with an address of its own.
void WarnOfSmallParts(const Fabric& fabric, const std::string& what, Warnings& warnings) {
  const auto provision = provision::ReadProvisionSettings(fabric, what);
  if (!provision || !*provision) return;
  for (std::size_t i = 0; i < fabric.rails.size(); ++i) {
    const Rail& rail = fabric.rails[i];
    const auto vfs = (*provision)->Of(rail.name).vfs;
    const auto capacity = node_index::CapacityOf(rail);
    if (!vfs || !capacity || capacity->nodes == 0 || static_cast<std::uint64_t>(*vfs) <= capacity->least)
      continue;
    const char* key = rail.node_subnet ? "nodeSubnet" : "nodeBlock";
    warnings.push_back(WarningAt(what, i, key,
                                 std::to_string(*rail.PartLength()) + " gives a node " +
                                     std::to_string(capacity->least) + " addresses for pods of " + rail.name +
                                     ", and provision makes " + std::to_string(*vfs) + " VFs there",
                                 std::string("a smaller ") + key + ", or fewer VFs"));
  }
}

void WarnOfNames(const Fabric& fabric, const std::string& what, Warnings& warnings) {
  for (std::size_t i = 0; i < fabric.rails.size(); ++i) {
    auto why = WhyNoInterfaceName(fabric, fabric.rails[i]);
    if (!why) continue;
    why->message = what + ": /rails/" + std::to_string(i) + "/name: " + why->message;
    warnings.push_back(*std::move(why));
  }
}

// NCCL puts the lines of nccl.conf into the environment of its own process, when it starts (setEnvFile in its
// src/misc/param.cc). Only what starts after it, and in its process, can read them there.
void WarnOfVariablesOfOthers(const Fabric& fabric, const std::string& what, Warnings& warnings) {
  for (const auto& [name, value] : fabric.nccl_config_options.env) {
    const auto is_prefix = [name = name](std::string_view prefix) { return name.starts_with(prefix); };
    if (std::ranges::any_of(std::array{"NCCL_", "RCCL_", "OFI_NCCL_"}, is_prefix)) continue;
    std::string text = what + ": /ncclConfig/env/" + EscapePointer(name);
    text.append(": programs besides NCCL do not read nccl.conf, so they do not see ").append(name);
    warnings.push_back(
        {ErrorCode::kInvalid, std::move(text), "set it in the environment of the containers", 0});
  }
}

}  // namespace

std::vector<Error> WarningsOf(const Fabric& fabric, const std::string& what) {
  Warnings warnings;
  WarnOfMissingIndices(fabric, what, warnings);
  WarnOfUndividedSubnets(fabric, what, warnings);
  WarnOfNodesWithoutAddresses(fabric, what, warnings);
  WarnOfNetworksPerHost(fabric, what, warnings);
  WarnOfRoutes(fabric, what, warnings);
  WarnOfSmallParts(fabric, what, warnings);
  WarnOfNames(fabric, what, warnings);
  WarnOfVariablesOfOthers(fabric, what, warnings);
  return warnings;
}

}  // namespace railhead::railctl
