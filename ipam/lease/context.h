// The state that the parts of the leaser share during a step: heartbeat, block check, block allocation and
// return, dead nodes. Each part may lose its own members at any time. The local lease state is durable; this
// is the copy in memory.
// Ownership: borrows cluster store and lease state. Threads: none.
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

// LeaseStateStore: the local lease state, and the leaser's questions about the node's addresses.
//
// OpenLeaseStateStore() keeps the state in the node's address store. Each call is one transaction,
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

struct LeaseState {
  std::optional<NodeLease> lease;
  std::vector<NodeBlock> blocks;
};

struct LeaseStateChange {
  std::optional<NodeLease> lease;
  std::vector<NodeBlock> put;
  std::vector<BlockName> erase;
};

class LeaseStateStore {
 public:
  LeaseStateStore() = default;
  LeaseStateStore(const LeaseStateStore&) = delete;
  LeaseStateStore& operator=(const LeaseStateStore&) = delete;
  virtual ~LeaseStateStore() = default;

  virtual Result<LeaseState> Read() = 0;
  virtual Result<void> Write(const LeaseStateChange& change) = 0;
  // How many addresses of each block are not free.
  virtual Result<std::vector<std::uint64_t>> CountInUse(const std::vector<NodeBlock>& blocks) = 0;
  // The held addresses.
  virtual Result<std::vector<AddressRecord>> HeldIn(const NodeBlock& block) = 0;
  // Makes the block kReturning. false: one of its addresses is not free, and nothing has changed.
  virtual Result<bool> Retire(const NodeBlock& block) = 0;
};

// `clocks`: as AddressStore::Open().
std::unique_ptr<LeaseStateStore> OpenLeaseStateStore(const Root& root, std::chrono::seconds reuse_delay,
                                                     ClockSource clocks = {});

// The settings of leasing: node, subnets, times.
//
// ParseLeaseSettings() reads fabric.json's `addresses.store` (docs/reference/fabric.md), whose parts of
// one kind of store only, `etcd` and `kubernetes`, are passed on as they stand.
// Errors: kInvalid with the JSON pointer. Threads: immutable values.

struct LeaseTimes {
  using Milliseconds = std::chrono::milliseconds;
  Milliseconds renew = std::chrono::seconds(60);        // a heartbeat at least this often
  Milliseconds fence = std::chrono::hours(12);          // without an answer no address is allocated
  Milliseconds reclaim = std::chrono::hours(24);        // of silence, then blocks are reclaimed; 0: never
  Milliseconds reuse_delay = std::chrono::minutes(10);  // a released address stays unused

  // How long a new block stays provisional: a node that had it before the cluster store was restored renews
  // within that time, and notices.
  [[nodiscard]] Milliseconds ProvisionalTime() const { return 2 * renew; }
};

struct LeaseSettings {
  std::string node;
  std::string machine;  // tells a copied disk from the one it was copied from
  LeaseTimes times;
  std::uint64_t low_water = 0;  // free addresses of a pool below which a block is allocated
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
// of which the result has the first and `all` gets all. `reuse_delay`: the fabric's.
Result<LeaseStoreConfig> ParseLeaseSettings(const std::string& json, const std::string& what,
                                            std::chrono::seconds reuse_delay,
                                            std::vector<Error>* all = nullptr);

// A change, for the log.
struct LeaseEvent {
  enum class Kind : std::uint8_t {
    kAllocated,          // provisional
    kUsable,             // its addresses are allocated from now on
    kReturned,           // to the cluster
    kAbandoned,          // an allocation: another node was first
    kReacquired,         // after a restore: created again, or taken from a provisional allocation
    kLost,               // another node has it; `detail` has the addresses that are still held here
    kRestored,           // the cluster store is in an earlier state than it was
    kUnknownWriter,      // another writer than this store has written the node's record
    kReclaimedByOthers,  // others have begun to reclaim this node's blocks: it was silent for too long
    kDeadNodeReclaimed,  // the blocks of a dead node are free
    kPoolFull,           // no block is left
    kOtherBlockSize,     // the cluster divides the subnet differently
    kMachinePaused,      // or its clock was set: no address is allocated before the next renewal
  };
  Kind kind;
  std::string pool;
  std::optional<std::uint64_t> index;
  std::string detail;
};
inline constexpr std::size_t kLeaseEventKinds =
    static_cast<std::size_t>(LeaseEvent::Kind::kMachinePaused) + 1;
std::string_view NameOf(LeaseEvent::Kind kind);
// Whether an operator has to act.
bool IsProblem(LeaseEvent::Kind kind);

using LeaseRandom = std::function<std::uint64_t()>;

struct LeaseContext {
  LeaseContext(LeaseSettings of_node, ClusterStore& of_cluster, LeaseStateStore& of_lease_state,
               LeaseRandom source)
      : settings(std::move(of_node)),
        cluster(of_cluster),
        lease_state(of_lease_state),
        random(std::move(source)) {}

  const LeaseSettings settings;
  ClusterStore& cluster;
  LeaseStateStore& lease_state;
  LeaseRandom random;

  // Of this step.
  ClockReading now;
  NodeLease lease;
  std::map<BlockName, NodeBlock> blocks;
  std::vector<LeaseEvent> events;
  std::uint64_t calls_at_start = 0;
  bool more = false;  // work is left because the step had made its calls

  // To the store of the lease state, then here.
  Result<void> Save(const LeaseStateChange& change);
  Result<void> Put(const NodeBlock& block) { return Save({{}, {block}, {}}); }
  Result<void> Erase(const NodeBlock& block) { return Save({{}, {}, {NameOf(block)}}); }
  Result<void> SetState(NodeBlock block, BlockState state);

  // Whether the step has made all its calls; then it comes again at once.
  bool OutOfCalls();
  // 128 bits.
  [[nodiscard]] std::string Nonce() const;
  // Makes the node a new instance for the cluster store: its blocks have to be checked.
  void NewInstance();
  [[nodiscard]] LeaseEntry Unseen(const LeaseKey& key) const { return {key, {}, {}}; }
  [[nodiscard]] BlockRecord RecordOf(const NodeBlock& block, bool leased) const {
    return {settings.node, lease.instance, block.nonce, leased};
  }
  [[nodiscard]] const PoolLayout* LayoutOf(const std::string& pool) const;
  void AddEvent(LeaseEvent::Kind kind, const NodeBlock& block, std::string detail = {});
  void AddEvent(LeaseEvent::Kind kind, std::string detail);
};

inline LeaseKey KeyOf(const NodeBlock& block) {
  return LeaseKey::Block(block.pool, block.index);
}

}  // namespace railhead::ipam
