// What the parts of the leaser share during a step: node_sign, block_check, claims, returns,
// dead_nodes. Each of them remembers on its own only what it can do without; what must not be
// lost is in the node's book, of which this is the copy that is at hand.
// Ownership: borrows cluster store and book. Threads: none.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipam/lease/cluster_store.h"
#include "ipam/lease/pool_layout.h"
#include "ipam/store/address_record.h"
#include "ipam/store/node_blocks.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"
#include "netns/json/record_read.h"

namespace railhead::ipam {

// NodeBook: what the leaser keeps on its node, and what it asks about addresses there.
//
// OpenNodeBook() keeps it in the node's address store. Each call is one transaction,
// durable when it returns; the store is open during the call only.
// Errors: as AddressStore. Threads: one caller at a time; one leaser per node.

struct BlockName {
  std::string pool;
  std::uint64_t index = 0;
  auto operator<=>(const BlockName&) const = default;
};
inline BlockName NameOf(const NodeBlock& block) {
  return {block.pool, block.index};
}

struct BookState {
  std::optional<NodeLease> lease;
  std::vector<NodeBlock> blocks;
};

struct BookChange {
  std::optional<NodeLease> lease;
  std::vector<NodeBlock> put;
  std::vector<BlockName> erase;
};

class NodeBook {
 public:
  NodeBook() = default;
  NodeBook(const NodeBook&) = delete;
  NodeBook& operator=(const NodeBook&) = delete;
  virtual ~NodeBook() = default;

  virtual Result<BookState> Read() = 0;
  virtual Result<void> Write(const BookChange& change) = 0;
  // How many addresses of each block are held or resting.
  virtual Result<std::vector<std::uint64_t>> Taken(const std::vector<NodeBlock>& blocks) = 0;
  // Which are held.
  virtual Result<std::vector<AddressRecord>> Held(const NodeBlock& block) = 0;
  // Makes the block kReturning, unless an address of it is held or resting: false.
  virtual Result<bool> Retire(const NodeBlock& block) = 0;
};

// `rest`: after it a released address is free again. `clocks`: as AddressStore::Open().
std::unique_ptr<NodeBook> OpenNodeBook(const Root& root, std::chrono::seconds rest, ClockSource clocks = {});

// What leasing needs to know: who this node is, which subnets, how long everything takes.
//
// ParseLeaseSettings() reads fabric.json's `addresses.store` (docs/reference/fabric.md), whose parts of
// one kind of store only, `etcd` and `kubernetes`, are passed on as they stand.
// Errors: kInvalid with the JSON pointer. Threads: immutable values.

struct LeaseTimes {
  using Milliseconds = std::chrono::milliseconds;
  Milliseconds renew = std::chrono::seconds(60);  // a sign of life at least this often
  Milliseconds fence = std::chrono::hours(12);    // without an answer nothing is handed out
  Milliseconds reclaim = std::chrono::hours(24);  // of silence, then blocks are taken; 0: never
  Milliseconds rest = std::chrono::minutes(10);   // after a release nobody gets the address

  // How long a claim rests: whoever had the block before the cluster store was restored has
  // renewed meanwhile, and has found out.
  [[nodiscard]] Milliseconds Probation() const { return 2 * renew; }
};

struct LeaseSettings {
  std::string node;
  std::string machine;  // tells a copied disk from the one it was copied from
  LeaseTimes times;
  std::uint64_t low_water = 0;  // free addresses of a pool below which a block is claimed
  std::vector<PoolLayout> pools;
};

enum class LeaseStoreType : std::uint8_t { kNode, kEtcd, kKubernetes };

struct LeaseStoreConfig {
  LeaseStoreType type = LeaseStoreType::kNode;
  std::uint64_t block_size = 64;
  std::uint64_t low_water = 0;  // never 0 once read
  std::chrono::seconds renew = std::chrono::floor<std::chrono::seconds>(LeaseTimes{}.renew);
  std::chrono::seconds fence = std::chrono::floor<std::chrono::seconds>(LeaseTimes{}.fence);
  std::chrono::seconds reclaim = std::chrono::floor<std::chrono::seconds>(LeaseTimes{}.reclaim);
  std::string etcd;        // JSON; "": not given
  std::string kubernetes;  // likewise
};

}  // namespace railhead::ipam

template <>
struct railhead::Names<railhead::ipam::LeaseStoreType> {
  using enum ipam::LeaseStoreType;
  static constexpr std::array kAll = {std::pair{"node", kNode}, std::pair{"etcd", kEtcd},
                                      std::pair{"kubernetes", kKubernetes}};
};

template <>
struct railhead::Shape<railhead::ipam::LeaseStoreConfig> {
  using T = ipam::LeaseStoreConfig;
  static void List(auto& f) {
    f("type", &T::type);
    f("blockSize", &T::block_size, {.min = 1, .max = 65536});
    f("lowWater", &T::low_water, {.min = 1, .max = 1 << 20});
    f("renewSeconds", &T::renew, {.min = 1, .max = 3600});
    f("fenceSeconds", &T::fence, {.min = 1, .max = kYear});
    f("reclaimSeconds", &T::reclaim, {.min = 0, .max = kYear});
    f.Form("etcd", record::RawForm<&T::etcd>{});
    f.Form("kubernetes", record::RawForm<&T::kubernetes>{});
  }
  static void Complete(T& config);
  static void Check(const T& config, const record::Complain& complain);

 private:
  static constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600;
};

namespace railhead::ipam {

// `json`: Fabric::address_store; "" is the default, a node store. `what` names the fabric's file in errors,
// of which the result has the first and `all` gets all. `rest`: the fabric's.
Result<LeaseStoreConfig> ParseLeaseSettings(const std::string& json, const std::string& what,
                                            std::chrono::seconds rest, std::vector<Error>* all = nullptr);

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

}  // namespace railhead::ipam
