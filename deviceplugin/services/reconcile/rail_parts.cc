#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/fabric/node_index.h"
#include "deviceplugin/services/reconcile/reconcile_pass.h"
#include "ipam/store/rail_part_of.h"
#include "ipam/store/store.h"
#include "netns/base/node.h"

namespace railhead::reconcile {
namespace {

Result<void> NoteParts(const Root& root) {
  auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  if (!store) return {};
  const auto fabric = RH_TRY(ReadFabric(root));
  if (!fabric) return {};
  const std::string node = RH_TRY(NodeName(root));
  // Without an index that counts, the node has no part now.
  const auto index = IndexOfThisNode(root, *fabric, node).value_or(std::nullopt);
  const std::chrono::seconds delay(fabric->reuse_delay_seconds.value_or(kDefaultReuseDelaySeconds));
  std::vector<ipam::RailPart> parts;
  for (const Rail& rail : fabric->rails) {
    if (!rail.subnet) continue;
    const auto ranges = rail.RangesOf(node, index);
    if (ranges.empty()) continue;
    const IpPrefix network = rail.NetworkOf(ranges.front().first);
    auto part = ipam::RailPartOf(
        rail.name, {network, ranges, rail.ExcludedFrom(ranges), rail.GatewayOf(network)}, delay);
    if (part) parts.push_back(*std::move(part));
  }
  return store->NoteParts(parts);
}

}  // namespace

void ReconcileParts(ReconcilePass& pass) {
  if (pass.Stopped()) return;
  if (const auto noted = NoteParts(pass.root); !noted)
    pass.Add("address", "", "a change of this node's part of a rail cannot be noted", Fail(noted.error()));
}

}  // namespace railhead::reconcile
