#include "deviceplugin/tools/railctl/address_report.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cni/fabric/node_index.h"
#include "cni/protocol/cni_args.h"
#include "cni/state/journal.h"
#include "deviceplugin/services/reconcile/address_holders.h"
#include "ipam/store/range.h"
#include "ipam/store/runs.h"
#include "netns/base/node.h"

namespace railhead::railctl {
namespace {

std::string LeakOf(const ipam::AddressRecord& record, const reconcile::AddressHolders& holders,
                   const std::string& boot_id) {
  if (record.state != ipam::AddressState::kHeld) return {};
  if (record.boot_id != boot_id) return "it was allocated before this boot, which no container survived";
  if (!holders.complete() || holders.Attachment(record) != nullptr || holders.IsRemembered(record)) return {};
  return "no attachment of railhead has it, and no runtime knows its container: its DEL never came";
}

}  // namespace

std::string_view StateOf(const ipam::AddressRecord& record) {
  switch (record.state) {
    case ipam::AddressState::kHeld:
      return "held";
    case ipam::AddressState::kCoolingDown:
      return "cooling down";
    case ipam::AddressState::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

std::vector<KnownAddress> AddressReport::Leaked() const {
  std::vector<KnownAddress> leaked = addresses;
  std::erase_if(leaked, [](const KnownAddress& known) { return known.leak.empty(); });
  return leaked;
}

Result<std::optional<AddressReport>> ReportAddresses(const Root& root) {
  AddressReport report;
  std::vector<ipam::AddressRecord> records;
  {
    const auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
    if (!store) return std::nullopt;
    records = RH_TRY(store->List());
    report.damage = RH_TRY(store->Verify());
  }
  // After the store: an ADD writes its journal entry before it allocates addresses.
  const auto holders = RH_TRY(reconcile::AddressHolders::Read(root));
  const std::string boot_id = RH_TRY(BootId(root));
  report.complete = holders.complete();
  for (ipam::AddressRecord& record : records) {
    KnownAddress known;
    const JournalEntry* entry =
        record.state == ipam::AddressState::kHeld ? holders.Attachment(record) : nullptr;
    known.attached = entry != nullptr;
    if (entry != nullptr) known.pod = PodName(entry->cni_args);
    known.leak = LeakOf(record, holders, boot_id);
    known.record = std::move(record);
    report.addresses.push_back(std::move(known));
  }
  std::ranges::sort(report.addresses, [](const auto& a, const auto& b) {
    return std::tie(a.record.pool, a.record.address) < std::tie(b.record.pool, b.record.address);
  });
  return report;
}

std::uint64_t RailAddresses::Free() const {
  const std::uint64_t taken = held + cooling_down + quarantined;
  return size - std::min(size, taken);
}

Result<RailAddresses> AddressesOfRail(const Rail& rail, const std::vector<IpRange>& ranges,
                                      const AddressReport& report) {
  const IpPrefix network = rail.NetworkOf(ranges.front().first);
  const auto set =
      RH_TRY(ipam::RangeSet::Make({network, ranges, rail.ExcludedFrom(ranges), rail.GatewayOf(network)}));
  RailAddresses use{rail.name, network.ToString(), ranges, set.Size()};
  for (const KnownAddress& known : report.addresses) {
    if (!set.Contains(known.record.address)) continue;
    switch (known.record.state) {
      case ipam::AddressState::kHeld:
        ++use.held;
        break;
      case ipam::AddressState::kCoolingDown:
        ++use.cooling_down;
        break;
      case ipam::AddressState::kQuarantined:
        ++use.quarantined;
        break;
    }
  }
  return use;
}

Result<std::vector<RailAddresses>> AddressesOfRails(const Root& root, const AddressReport& report) {
  const auto fabric = RH_TRY(ReadFabric(root));
  std::vector<RailAddresses> rails;
  if (!fabric) return rails;
  const std::string node = RH_TRY(NodeName(root));
  const auto index = IndexOfThisNode(root, *fabric, node);
  for (const Rail& rail : fabric->rails) {
    if (!rail.subnet) continue;
    const auto ranges = rail.RangesOf(node, index.value_or(std::nullopt));
    auto use = ranges.empty() ? Fail(ErrorCode::kNotFound, "fabric.json gives this node no range")
                              : AddressesOfRail(rail, ranges, report);
    if (!use && ranges.empty() && !index) use = Fail(index.error());
    rails.push_back(use ? *std::move(use)
                        : RailAddresses{.rail = rail.name,
                                        .pool = rail.subnet->Network().ToString(),
                                        .ranges = ranges,
                                        .because = use.error().message});
  }
  return rails;
}

}  // namespace railhead::railctl
