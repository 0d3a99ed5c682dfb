// railctl ipam: the node's addresses.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cni/protocol/plugin.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/reconcile/address_owners.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"
#include "ipam/store/node_blocks.h"
#include "ipam/store/store.h"
#include "netns/base/node.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

struct IpamOptions {
  bool json = false;
  bool force = false;
  std::string pool;
  std::string which;  // an address, or a container's id or the beginning of it
};

bool Matches(const KnownAddress& known, const std::string& which) {
  return known.record.address.ToString() == which || known.record.owner.container.rfind(which, 0) == 0;
}

void PrintAddresses(const std::vector<KnownAddress>& addresses, bool as_json) {
  if (!as_json) return PrintTable(AsRows(addresses));
  nlohmann::json list = nlohmann::json::array();
  for (const KnownAddress& known : addresses) list.push_back(AsJson(known));
  PrintJson({{"addresses", std::move(list)}});
}

int ListAddresses(const AddressReport& report, const IpamOptions& options) {
  std::vector<KnownAddress> chosen = report.addresses;
  if (!options.pool.empty())
    std::erase_if(chosen, [&](const KnownAddress& known) { return known.record.pool != options.pool; });
  PrintAddresses(chosen, options.json);
  return kDone;
}

int ShowAddress(const AddressReport& report, const IpamOptions& options) {
  std::vector<KnownAddress> chosen = report.addresses;
  std::erase_if(chosen, [&](const KnownAddress& known) { return !Matches(known, options.which); });
  if (chosen.empty()) {
    return Complain({ErrorCode::kNotFound, "'" + options.which + "' is no address or container in the store",
                     "an address that is free is not in it; all that is: railctl ipam list", 0},
                    kFailed);
  }
  PrintAddresses(chosen, options.json);
  return kDone;
}

int CheckAddresses(const AddressReport& report, const IpamOptions& options) {
  std::vector<KnownAddress> leaked = report.addresses;
  std::erase_if(leaked, [](const KnownAddress& known) { return known.leak.empty(); });
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const KnownAddress& known : leaked) list.push_back(AsJson(known));
    PrintJson({{"leaked", std::move(list)}, {"damage", report.damage}, {"complete", report.complete}});
  } else {
    for (const std::string& damage : report.damage) (void)std::printf("damaged: %s\n", damage.c_str());
    for (const KnownAddress& known : leaked) {
      (void)std::printf("leaked: %s of %s, container %s: %s\n", known.record.address.ToString().c_str(),
                        known.record.owner.network.c_str(), known.record.owner.container.c_str(),
                        known.leak.c_str());
    }
    if (!leaked.empty())
      (void)std::printf("railheadd releases leaked addresses; by hand: railctl ipam release ADDRESS\n");
    if (!report.complete) (void)std::printf("no runtime keeps results here: leaks cannot be told\n");
    if (report.damage.empty() && leaked.empty())
      (void)std::printf("%zu addresses, well\n", report.addresses.size());
  }
  return report.damage.empty() && leaked.empty() ? kDone : kFailed;
}

int Export(const AddressReport& report, const IpamOptions& /*options*/) {
  PrintAddresses(report.addresses, true);
  return kDone;
}

int Events(const Root& root, bool as_json) {
  const auto facts = reconcile::ReadAddressFacts(root, 0);
  if (!facts) return Complain(facts.error(), kFailed);
  nlohmann::json list = nlohmann::json::array();
  std::vector<Row> rows = {{"TIME", "EVENT", "WHAT"}};
  for (const ipam::AddressEvent& event : facts->events) {
    const std::string time =
        FormatTime(std::chrono::system_clock::time_point(std::chrono::seconds(event.wall_seconds)));
    const std::string name(NameOf(event.kind));
    rows.push_back({time, name, reconcile::Sentence(event)});
    nlohmann::json json = {{"number", event.number}, {"time", time}, {"event", name}, {"count", event.count}};
    if (!event.pool.empty()) json["pool"] = event.pool;
    if (event.address) json["address"] = event.address->ToString();
    if (!event.owner.container.empty()) json["container"] = event.owner.container;
    list.push_back(std::move(json));
  }
  if (as_json) {
    PrintJson({{"events", std::move(list)}});
  } else {
    PrintTable(rows);
  }
  return kDone;
}

// What is in use is released only by force: the next pod would get its address.
Result<void> Release(const Root& root, const AddressReport& report, const IpamOptions& options) {
  const auto known = std::ranges::find_if(report.addresses, [&](const KnownAddress& one) {
    return one.record.address.ToString() == options.which && one.record.state == ipam::AddressState::kHeld;
  });
  if (known == report.addresses.end()) {
    return Fail(ErrorCode::kNotFound, options.which + " is held by nobody", "what is: railctl ipam list");
  }
  if (known->leak.empty() && !options.force) {
    return Fail(ErrorCode::kBusy,
                options.which + " may be in use by container " + known->record.owner.container +
                    (known->pod.empty() ? std::string() : ", pod " + known->pod),
                "delete the pod; or, when you know that it is gone: --force");
  }
  auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  const ipam::AddressRecord& wanted = known->record;
  // The very holder that was looked at: the address may be another's by now.
  const auto released = RH_TRY(store->ReleaseWhere([&](const ipam::AddressRecord& held) {
    return held.pool == wanted.pool && held.address == wanted.address && held.owner == wanted.owner;
  }));
  if (released.empty())
    return Fail(ErrorCode::kConflict, options.which + " has just been released by another");
  (void)std::printf("released %s; it rests now\n", options.which.c_str());
  return {};
}

using Act = std::function<int(const AddressReport& report, const IpamOptions& options)>;

int RunIpam(const Root& root, const IpamOptions& options, const Act& act) {
  const auto report = ReportAddresses(root);
  if (!report) return Complain(report.error(), kFailed);
  // No store: nothing is held.
  return act(report->value_or(AddressReport{{}, {}, true}), options);
}

}  // namespace

void AddIpamCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* ipam = app->add_subcommand("ipam", "which addresses of the rails are whose");
  ipam->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, Act act) {
    auto options = std::make_shared<IpamOptions>();
    CLI::App* command = ipam->add_subcommand(name, what);
    command->callback(
        [options, &root, status, act = std::move(act)] { *status = RunIpam(root, *options, act); });
    return std::pair(command, options);
  };
  const auto with_json = [](const auto& one) {
    one.first->add_flag("--json", one.second->json, "as JSON");
    return one;
  };
  const auto list = with_json(add("list", "held and resting addresses, with their holders", ListAddresses));
  list.first->add_option("--pool", list.second->pool, "only this subnet: 10.100.0.0/16");
  const auto show = with_json(add("show", "one address, or all of a container", ShowAddress));
  show.first->add_option("which", show.second->which, "address, or container id (or its beginning)")
      ->required();
  const auto check = with_json(
      add("check", "contradictions in the store, and addresses that nobody can have", CheckAddresses));
  check.first->footer("Exit status 1 when anything was found.");
  add("export", "all of it as JSON", Export);
  auto events_as_json = std::make_shared<bool>(false);
  CLI::App* events = ipam->add_subcommand(
      "events", "the latest 256: rests cut short, pools exhausted, quarantines, the store's file");
  events->add_flag("--json", *events_as_json, "as JSON");
  events->callback([events_as_json, &root, status] { *status = Events(root, *events_as_json); });
  AddIpamBlocksCommand(ipam, root, status);
  AddIpamImportCommand(ipam, root, status);
  const auto release = add("release", "lets a held address rest",
                           [&root](const AddressReport& report, const IpamOptions& options) {
                             const auto done = Release(root, report, options);
                             return done ? kDone : Complain(done.error(), kFailed);
                           });
  release.first->add_option("address", release.second->which, "10.100.0.17")->required();
  release.first->add_flag("--force", release.second->force, "also when it may be in use");
}

namespace {

std::string LeakOf(const ipam::AddressRecord& record, const reconcile::AddressHolders& holders,
                   const std::string& boot_id) {
  if (record.state != ipam::AddressState::kHeld) return {};
  if (record.boot_id != boot_id) return "it was given before this boot, which no container survived";
  if (!holders.complete() || holders.Attachment(record) != nullptr || holders.IsRemembered(record)) return {};
  return "no attachment of railhead has it, and no runtime remembers its container: its DEL never came";
}

std::string Since(const ipam::AddressRecord& record) {
  return FormatTime(std::chrono::system_clock::time_point(std::chrono::seconds(record.wall_seconds)));
}

const char* StateWord(ipam::AddressState state) {
  switch (state) {
    case ipam::AddressState::kHeld:
      return "held";
    case ipam::AddressState::kResting:
      return "resting";
    case ipam::AddressState::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

}  // namespace

Result<std::optional<AddressReport>> ReportAddresses(const Root& root) {
  AddressReport report;
  std::vector<ipam::AddressRecord> records;
  {
    const auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
    if (!store) return std::nullopt;
    records = RH_TRY(store->List());
    report.damage = RH_TRY(store->Verify());
  }
  // After the store: whoever is in it by then has written its journal entry before.
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

std::vector<Row> AsRows(const std::vector<KnownAddress>& addresses) {
  std::vector<Row> rows = {{"ADDRESS", "POOL", "STATE", "SINCE", "CONTAINER", "INTERFACE", "NETWORK", "POD"}};
  rows.reserve(addresses.size() + 1);
  for (const KnownAddress& known : addresses) {
    const ipam::AddressRecord& record = known.record;
    rows.push_back({record.address.ToString(), record.pool,
                    known.leak.empty() ? StateWord(record.state) : "leaked", Since(record),
                    record.owner.container, record.owner.ifname, record.owner.network, known.pod});
  }
  return rows;
}

nlohmann::json AsJson(const KnownAddress& known) {
  const ipam::AddressRecord& record = known.record;
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

// railctl ipam blocks: what this node leases of the rails' subnets.

namespace {

struct Lease {
  std::optional<ipam::NodeLease> node;
  std::vector<ipam::NodeBlock> blocks;
  std::vector<std::size_t> in_use;  // of each block: addresses that are not free
  std::string invalid;              // why nothing is given from them; empty: it is
};

std::size_t InUse(const ipam::NodeBlock& block, const std::vector<ipam::AddressRecord>& records) {
  std::size_t count = 0;
  for (const ipam::AddressRecord& record : records) {
    if (record.pool == block.pool && block.range.Contains(record.address)) ++count;
  }
  return count;
}

Result<Lease> ReadLease(const Root& root) {
  Lease lease;
  auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  if (!store) return lease;
  const auto read = store->Transact([&](ipam::LmdbTxn& txn, const ipam::ClockReading& now) -> Result<bool> {
    lease.node = RH_TRY(ReadNodeLease(txn));
    const auto valid = lease.node ? lease.node->CheckValid(now) : Result<void>();
    if (!valid) lease.invalid = valid.error().message;
    lease.blocks = RH_TRY(ReadAllNodeBlocks(txn));
    return false;  // nothing to write
  });
  if (!read) return Fail(read.error());
  const auto records = RH_TRY(store->List());
  for (const ipam::NodeBlock& block : lease.blocks) lease.in_use.push_back(InUse(block, records));
  return lease;
}

void PrintLease(const Lease& lease) {
  if (!lease.node) {
    (void)std::printf(
        "this node leases nothing: its rails have ranges of their own, or railheadd has not run yet\n");
    return;
  }
  std::vector<Row> rows = {{"BLOCK", "POOL", "NUMBER", "STATE", "IN USE"}};
  for (std::size_t i = 0; i < lease.blocks.size(); ++i) {
    const ipam::NodeBlock& block = lease.blocks[i];
    rows.push_back({block.range.ToString(), block.pool, std::to_string(block.index),
                    std::string(NameOf(block.state)), std::to_string(lease.in_use[i])});
  }
  PrintTable(rows);
  if (!lease.invalid.empty()) (void)std::printf("nothing is given from them: %s\n", lease.invalid.c_str());
}

void PrintAsJson(const Lease& lease) {
  nlohmann::json blocks = nlohmann::json::array();
  for (std::size_t i = 0; i < lease.blocks.size(); ++i) {
    const ipam::NodeBlock& block = lease.blocks[i];
    blocks.push_back({{"pool", block.pool},
                      {"number", block.index},
                      {"first", block.range.first.ToString()},
                      {"last", block.range.last.ToString()},
                      {"state", std::string(NameOf(block.state))},
                      {"inUse", lease.in_use[i]}});
  }
  nlohmann::json json = {{"blocks", std::move(blocks)}, {"given", lease.node && lease.invalid.empty()}};
  if (lease.node) json["node"] = lease.node->node;
  if (!lease.invalid.empty()) json["because"] = lease.invalid;
  PrintJson(json);
}

int RunBlocks(const Root& root, bool as_json) {
  const auto lease = ReadLease(root);
  if (!lease) return Complain(lease.error(), kFailed);
  as_json ? PrintAsJson(*lease) : PrintLease(*lease);
  return lease->invalid.empty() ? kDone : kFailed;
}

}  // namespace

void AddIpamBlocksCommand(CLI::App* ipam, const Root& root, int* status) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* blocks = ipam->add_subcommand("blocks", "what this node leases of the rails' subnets");
  blocks->add_flag("--json", *as_json, "as JSON");
  blocks->footer("Exit status 1 when nothing may be given from them now.");
  blocks->callback([as_json, &root, status] { *status = RunBlocks(root, *as_json); });
}

}  // namespace railhead::railctl
