// What the parts of the leaser share during a step: node_sign, block_check, claims, returns,
// dead_nodes. Each of them remembers on its own only what it can do without; what must not be
// lost is in the node's book, of which this is the copy that is at hand.
// Ownership: borrows cluster store and book. Threads: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam/lease/cluster_records.h"
#include "ipam/lease/cluster_store.h"
#include "ipam/lease/node_book.h"
#include "ipam/lease/settings.h"
#include "netns/base/result.h"

namespace railhead {

// What has changed, for the log.
struct LeaseEvent {
  enum class Kind : std::uint8_t {
    kClaimed,      // on probation
    kUsable,       // handed out from now on
    kReturned,     // given back to the cluster
    kGivenUp,      // a claim: somebody was first
    kTakenBack,    // made again, or taken back from another's probation, after a restore
    kLost,         // another node has it: `detail` says what is still held here
    kRestored,     // the cluster store is in an earlier state than it was
    kStranger,     // the node's record was written by somebody who is not this store
    kWasTaken,     // others have begun to take this node's blocks: it was silent for long
    kReclaimed,    // the blocks of a dead node are free
    kPoolFull,     // no block is left
    kOtherLayout,  // the cluster divides the subnet differently
    kStoodStill,   // this machine did, or its clock was set: nothing is given before the next renewal
  };
  Kind kind;
  std::string pool;
  std::optional<std::uint64_t> index;
  std::string detail;
};
inline constexpr std::size_t kLeaseEventKinds = static_cast<std::size_t>(LeaseEvent::Kind::kStoodStill) + 1;
std::string_view NameOf(LeaseEvent::Kind kind);
// Something that people have to see to.
bool IsProblem(LeaseEvent::Kind kind);

using LeaseRandom = std::function<std::uint64_t()>;

struct LeaseContext {
  LeaseContext(LeaseSettings of_node, ClusterStore& of_cluster, NodeBook& of_node_book, LeaseRandom source)
      : settings(std::move(of_node)), cluster(of_cluster), book(of_node_book), random(std::move(source)) {}

  const LeaseSettings settings;
  ClusterStore& cluster;
  NodeBook& book;
  LeaseRandom random;

  // Of this step.
  ClockReading now;
  NodeLease lease;
  std::map<BlockName, NodeBlock> blocks;
  std::vector<LeaseEvent> events;
  std::uint64_t calls_at_start = 0;
  bool more = false;  // something was put off because the step had made its calls

  // To the book, then here.
  Result<void> Save(const BookChange& change);
  Result<void> Put(const NodeBlock& block) { return Save({{}, {block}, {}}); }
  Result<void> Erase(const NodeBlock& block) { return Save({{}, {}, {NameOf(block)}}); }
  Result<void> SetState(NodeBlock block, BlockState state);

  // Whether the step has made all its calls; then it comes again at once.
  bool Spent();
  // 128 bits.
  [[nodiscard]] std::string Nonce() const;
  // The node is another one to the cluster store from now on: blocks have to be looked at.
  void NewInstance();
  [[nodiscard]] LeaseEntry Unseen(const LeaseKey& key) const { return {key, {}, {}}; }
  [[nodiscard]] BlockRecord RecordOf(const NodeBlock& block, bool leased) const {
    return {settings.node, lease.instance, block.nonce, leased};
  }
  [[nodiscard]] const PoolLayout* LayoutOf(const std::string& pool) const;
  void Tell(LeaseEvent::Kind kind, const NodeBlock& block, std::string detail = {});
  void Tell(LeaseEvent::Kind kind, std::string detail);
};

inline LeaseKey KeyOf(const NodeBlock& block) {
  return LeaseKey::Block(block.pool, block.index);
}

}  // namespace railhead
