// The interface of block leasing to a cluster's store: small records with compare-and-swap. Only a caller
// that has read the latest state of a record can replace it. etcd and the Kubernetes API both offer this.
// Leasing needs nothing else of them: no clocks, locks or leases.
//
// Every operation is linearizable and one request. A block belongs to the node in its record: there is one
// record of a name, and Create() fails when it exists.
// Errors: kConflict when the record has changed since the caller read it; then nothing has changed. For
// Create, the record exists; for Update and Remove, it has changed or is gone. Also kPermission and kInvalid
// when the store refuses; kMalformed for an invalid answer. After kTimeout and kUnavailable the change may
// have been made: read the record.
// Threads: one caller at a time; calls block until their deadline at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipam/lease/pool_layout.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::ipam {

// A record's name. A pool is named by its subnet ("10.100.0.0/16"), as in ipam/store/address_record.h.
struct LeaseKey {
  enum class Kind : std::uint8_t {
    kBlock,  // of `pool`, number `index`: the node that leases it
    kNode,   // `node`: its blocks and its latest heartbeat
    kIndex,  // `index` of a node: the node that has claimed it; only the Kubernetes API has these records
  };
  Kind kind = Kind::kBlock;
  std::string pool;
  std::uint64_t index = 0;
  std::string node;

  static LeaseKey Block(std::string pool, std::uint64_t index) {
    return {Kind::kBlock, std::move(pool), index, {}};
  }
  static LeaseKey Node(std::string node) { return {Kind::kNode, {}, 0, std::move(node)}; }
  static LeaseKey Index(std::uint64_t index) { return {Kind::kIndex, {}, index, {}}; }
  auto operator<=>(const LeaseKey&) const = default;
};

struct LeaseEntry {
  LeaseKey key;
  std::string value;     // a JSON object, below 64 KiB
  std::string revision;  // the store's; means nothing but "this very state"

  bool operator==(const LeaseEntry&) const = default;
};

class ClusterStore {
 public:
  ClusterStore() = default;
  ClusterStore(const ClusterStore&) = delete;
  ClusterStore& operator=(const ClusterStore&) = delete;
  virtual ~ClusterStore() = default;

  // nullopt: the record does not exist.
  virtual Result<std::optional<LeaseEntry>> Get(const LeaseKey& key) = 0;
  virtual Result<LeaseEntry> Create(const LeaseKey& key, const std::string& value) = 0;
  virtual Result<LeaseEntry> Update(const LeaseEntry& seen, const std::string& value) = 0;
  virtual Result<void> Remove(const LeaseEntry& seen) = 0;

  // The allocated blocks of `pool` from number `from` on, in their order: at most
  // `limit` of them, from one state of the store.
  virtual Result<std::vector<LeaseEntry>> Blocks(const std::string& pool, std::uint64_t from,
                                                 std::size_t limit) = 0;
  // At most `limit` nodes by name, after `after` (empty: from the first).
  virtual Result<std::vector<LeaseEntry>> Nodes(const std::string& after, std::size_t limit) = 0;

  // How many requests this object has sent.
  [[nodiscard]] virtual std::uint64_t calls() const = 0;
};

// The values of a cluster store's records, as JSON objects:
//
//   block   {"node": "n1", "instance": "..", "nonce": "..", "state": "provisional" | "leased"}
//   node    {"instance": "..", "previous": "..", "session": "..", "machine": "..", "boot": "..",
//            "counter": 7, "blocks": {"10.7.0.0/16": [3, 4]}, "reclaimedBy": "n2"}
//   layout  {"blockSize": 64}: block number kLayoutIndex of a pool. Nodes that divide a
//           subnet differently would lease the same addresses as different blocks.
//
// Unknown fields are ignored: a newer version may be at work on another node.
// Errors: kMalformed, naming the record. Threads: pure functions.

inline constexpr std::uint64_t kLayoutIndex = PoolLayout::kMaxBlocks;

struct BlockRecord {
  std::string node;
  std::string instance;  // of the node, see NodeLease
  std::string nonce;     // of this allocation: identifies it even after a timeout
  bool leased = false;   // else provisional

  bool operator==(const BlockRecord&) const = default;
};

struct NodeRecord {
  std::string instance;
  std::string previous;
  std::string session;
  std::string machine;
  std::string boot;
  std::uint64_t counter = 0;
  std::map<std::string, std::vector<std::uint64_t>> blocks;  // those it has or is about to allocate
  std::string reclaimed_by;  // the node that reclaims its blocks, because it was silent for too long

  bool operator==(const NodeRecord&) const = default;
};

struct LayoutRecord {
  std::uint64_t block_size = 0;

  bool operator==(const LayoutRecord&) const = default;
};

std::string Encode(const BlockRecord& record);
std::string Encode(const NodeRecord& record);
std::string Encode(const LayoutRecord& record);

Result<BlockRecord> ParseBlockRecord(const LeaseEntry& entry);
Result<NodeRecord> ParseNodeRecord(const LeaseEntry& entry);
Result<LayoutRecord> ParseLayout(const LeaseEntry& entry);

// For messages: "block 3 of 10.7.0.0/16", "the record of node n1".
std::string Describe(const LeaseKey& key);

}  // namespace railhead::ipam

template <>
struct railhead::Shape<railhead::ipam::BlockRecord> {
  using Block = ipam::BlockRecord;
  static void List(auto& f) {
    f("node", &Block::node, kRequiredField);
    f("instance", &Block::instance, kRequiredField);
    f("nonce", &Block::nonce, kRequiredField);
    f("state", &Block::leased, {.need = Need::kRequired, .no = "provisional", .yes = "leased"});
  }
};

template <>
struct railhead::Shape<railhead::ipam::NodeRecord> {
  using Node = ipam::NodeRecord;
  static void List(auto& f) {
    f("instance", &Node::instance, kRequiredField);
    f("previous", &Node::previous, kSparseField);
    f("session", &Node::session, kRequiredField);
    f("machine", &Node::machine);
    f("boot", &Node::boot);
    f("counter", &Node::counter);
    f("blocks", &Node::blocks);
    f("reclaimedBy", &Node::reclaimed_by, kSparseField);
  }
};

template <>
struct railhead::Shape<railhead::ipam::LayoutRecord> {
  static void List(auto& f) {
    f("blockSize", &ipam::LayoutRecord::block_size, {.need = Need::kRequired, .min = 1});
  }
};
