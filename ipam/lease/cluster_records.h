// The values of a cluster store's records, as JSON objects:
//
//   block   {"node": "n1", "instance": "..", "nonce": "..", "state": "probation" | "leased"}
//   node    {"instance": "..", "previous": "..", "session": "..", "machine": "..", "boot": "..",
//            "counter": 7, "blocks": {"10.7.0.0/16": [3, 4]}, "takenBy": "n2"}
//   layout  {"blockSize": 64}: block number kLayoutIndex of a pool. Nodes that divide a
//           subnet differently would lease the same addresses as different blocks.
//
// Unknown fields are ignored: a newer version may be at work on another node.
// Errors: kMalformed, naming the record. Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ipam/lease/cluster_store.h"
#include "ipam/lease/pool_layout.h"
#include "netns/base/result.h"

namespace railhead {

inline constexpr std::uint64_t kLayoutIndex = PoolLayout::kMaxBlocks;

struct BlockRecord {
  std::string node;
  std::string instance;  // of the node, see NodeLease
  std::string nonce;     // of this claim: whose it was is known after a timeout too
  bool leased = false;   // else on probation

  bool operator==(const BlockRecord&) const = default;
};

struct NodeRecord {
  std::string instance;
  std::string previous;
  std::string session;
  std::string machine;
  std::string boot;
  std::uint64_t counter = 0;
  std::map<std::string, std::vector<std::uint64_t>> blocks;  // what it has or is about to claim
  std::string taken_by;  // the node that takes its blocks, because it has been silent for long

  bool operator==(const NodeRecord&) const = default;
};

std::string Encode(const BlockRecord& record);
std::string Encode(const NodeRecord& record);
std::string EncodeLayout(std::uint64_t block_size);

Result<BlockRecord> ParseBlockRecord(const LeaseEntry& entry);
Result<NodeRecord> ParseNodeRecord(const LeaseEntry& entry);
Result<std::uint64_t> ParseLayout(const LeaseEntry& entry);

// For messages: "block 3 of 10.7.0.0/16", "the record of node n1".
std::string Describe(const LeaseKey& key);

}  // namespace railhead
