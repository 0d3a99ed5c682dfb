// railctl ipam blocks: what this node leases of the rails' subnets.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"
#include "ipam/store/node_blocks.h"
#include "ipam/store/store.h"

namespace railhead::railctl {
namespace {

struct Lease {
  std::optional<NodeLease> node;
  std::vector<NodeBlock> blocks;
  std::vector<std::size_t> in_use;  // of each block: addresses that are not free
  std::string invalid;              // why nothing is given from them; empty: it is
};

std::size_t InUse(const NodeBlock& block, const std::vector<AddressRecord>& records) {
  std::size_t count = 0;
  for (const AddressRecord& record : records) {
    if (record.pool == block.pool && block.range.Contains(record.address)) ++count;
  }
  return count;
}

Result<Lease> ReadLease(const Root& root) {
  Lease lease;
  auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return lease;
  const auto read = store->Transact([&](LmdbTxn& txn, const ClockReading& now) -> Result<bool> {
    lease.node = RH_TRY(ReadNodeLease(txn));
    const auto valid = lease.node ? lease.node->CheckValid(now) : Result<void>();
    if (!valid) lease.invalid = valid.error().message;
    lease.blocks = RH_TRY(ReadAllNodeBlocks(txn));
    return false;  // nothing to write
  });
  if (!read) return Fail(read.error());
  const auto records = RH_TRY(store->List());
  for (const NodeBlock& block : lease.blocks) lease.in_use.push_back(InUse(block, records));
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
    const NodeBlock& block = lease.blocks[i];
    rows.push_back({block.range.ToString(), block.pool, std::to_string(block.index),
                    std::string(NameOf(block.state)), std::to_string(lease.in_use[i])});
  }
  PrintTable(rows);
  if (!lease.invalid.empty()) (void)std::printf("nothing is given from them: %s\n", lease.invalid.c_str());
}

void PrintAsJson(const Lease& lease) {
  nlohmann::json blocks = nlohmann::json::array();
  for (std::size_t i = 0; i < lease.blocks.size(); ++i) {
    const NodeBlock& block = lease.blocks[i];
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
