#include "deviceplugin/tools/railctl/ipam_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cni/protocol/pod_args.h"
#include "deviceplugin/services/health/health_json.h"
#include "netns/base/node.h"

namespace railhead::railctl {
namespace {

std::string LeakOf(const AddressRecord& record, const AddressHolders& holders, const std::string& boot_id) {
  if (record.state != AddressState::kHeld) return {};
  if (record.boot_id != boot_id) return "it was given before this boot, which no container survived";
  if (!holders.complete() || holders.Attachment(record) != nullptr || holders.IsRemembered(record)) return {};
  return "no attachment of railhead has it, and no runtime remembers its container: its DEL never came";
}

std::string Since(const AddressRecord& record) {
  return FormatTime(std::chrono::system_clock::time_point(std::chrono::seconds(record.wall_seconds)));
}

const char* StateWord(AddressState state) {
  switch (state) {
    case AddressState::kHeld:
      return "held";
    case AddressState::kResting:
      return "resting";
    case AddressState::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

}  // namespace

Result<std::optional<AddressReport>> ReportAddresses(const Root& root) {
  AddressReport report;
  std::vector<AddressRecord> records;
  {
    const auto store = RH_TRY(AddressStore::OpenExisting(root));
    if (!store) return std::nullopt;
    records = RH_TRY(store->List());
    report.damage = RH_TRY(store->Verify());
  }
  // After the store: whoever is in it by then has written its journal entry before.
  const auto holders = RH_TRY(AddressHolders::Read(root));
  const std::string boot_id = RH_TRY(BootId(root));
  report.complete = holders.complete();
  for (AddressRecord& record : records) {
    KnownAddress known;
    const JournalEntry* entry = record.state == AddressState::kHeld ? holders.Attachment(record) : nullptr;
    known.attached = entry != nullptr;
    if (entry != nullptr) known.pod = PodName(entry->cni_args);
    known.leak = LeakOf(record, holders, boot_id);
    known.record = std::move(record);
    report.addresses.push_back(std::move(known));
  }
  std::sort(report.addresses.begin(), report.addresses.end(), [](const auto& a, const auto& b) {
    return std::tie(a.record.pool, a.record.address) < std::tie(b.record.pool, b.record.address);
  });
  return report;
}

std::vector<Row> AsRows(const std::vector<KnownAddress>& addresses) {
  std::vector<Row> rows = {{"ADDRESS", "POOL", "STATE", "SINCE", "CONTAINER", "INTERFACE", "NETWORK", "POD"}};
  rows.reserve(addresses.size() + 1);
  for (const KnownAddress& known : addresses) {
    const AddressRecord& record = known.record;
    rows.push_back({record.address.ToString(), record.pool,
                    known.leak.empty() ? StateWord(record.state) : "leaked", Since(record),
                    record.owner.container, record.owner.ifname, record.owner.network, known.pod});
  }
  return rows;
}

nlohmann::json AsJson(const KnownAddress& known) {
  const AddressRecord& record = known.record;
  nlohmann::json json = {{"address", record.address.ToString()},
                         {"pool", record.pool},
                         {"state", StateWord(record.state)},
                         {"since", Since(record)},
                         {"container", record.owner.container},
                         {"interface", std::string(AttachmentIfname(record.owner))},
                         {"network", record.owner.network},
                         {"bootId", record.boot_id},
                         {"attached", known.attached}};
  if (!LinkName(record.owner).empty()) json["link"] = std::string(LinkName(record.owner));
  if (!known.pod.empty()) json["pod"] = known.pod;
  if (!known.leak.empty()) json["leak"] = known.leak;
  return json;
}

}  // namespace railhead::railctl
