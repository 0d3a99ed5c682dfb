// IndexClaim: this node's index among the nodes of the cluster, claimed in the Kubernetes API.
//
// A claim is an object that the index names: the API creates a name once, so an index has one node. The node
// claims the lowest free index of one list. If another node is first, it waits for a random time, which grows
// with each conflict. Then it lists again, and takes a random one of the 48 lowest free indices. So 1,250
// nodes that start at once need at most five writes each, and leave gaps only among the highest 48 indices
// (tests/unit/deviceplugin/services/node_index/index_simulation_test.cc).
//
// The node writes the index to its disk before it creates the claim. It requests another index only after
// the API has answered. So a lost answer, a late request or a kill makes no second claim: the node asks for
// the same index again.
//
// The claim holds the node's name and the uid of its Node object. It has no ownerReferences: the garbage
// collector would remove it with the Node, while pods of a node that is re-created still use its addresses.
// Instead other nodes remove it (index_reclaim.h). A node that finds its own claim marked, or under an
// earlier uid, writes it again. The uid differs after the Node was re-created, for example when the machine
// was re-imaged. It then keeps its index.
//
// A node gets another index when `nodes` lists another one, or when a rail has lost its addresses for the
// index. It keeps the claim of the former index while pods may have its addresses. Another fabric.json may
// not say which addresses those are. So every address counts that was held when the node began to use the new
// index. The former claim is removed once all of them have been released for reuseDelaySeconds. After a
// restart of railheadd, the addresses that are held then count. A busy rail may keep the former index for new
// pods, too (deviceplugin/services/fabric_follow/compose.h). The time begins when no rail does any more.
//
// Two machines may have one node name by mistake. kubelet writes its machine's id into the Node. A node
// claims and confirms nothing while that id is another machine's.
//
// The claim is confirmed every few minutes. If it is gone, the node creates it again. If another node has it,
// the node stops using the index first (cni/fabric/node_index.h), and then claims another one.
//
// Ownership: borrows the store. Threads: one. Errors: a step that failed says so and comes again later, with
// growing pauses.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/node_index.h"
#include "deviceplugin/services/node_index/index_reclaim.h"
#include "deviceplugin/services/node_index/index_store.h"
#include "ipam/store/address_record.h"
#include "netns/base/result.h"

namespace railhead::node_index {

// The addresses that pods of this node hold, by the clock of its address store.
struct HeldAddresses {
  std::uint64_t now_ms = 0;
  std::optional<std::uint64_t> oldest_ms;  // since when the first of them is held; nullopt: none is
};

// The node's disk: its index, and the addresses that pods hold. Each write is durable when it returns.
struct IndexFile {
  std::function<Result<std::optional<NodeIndex>>()> read;
  std::function<Result<void>(const NodeIndex&)> write;
  std::function<Result<HeldAddresses>()> held;
};

// What fabric.json says of indices now.
struct IndexNeeds {
  // The index in `nodes`: the node claims this one or none, so that `nodes` may be removed later.
  std::optional<int> listed;
  // Whether the node may have the index, and each rail has addresses for it.
  std::function<bool(int)> fits;
  std::set<int> kept;  // former ones, by which busy rails still give addresses
  std::chrono::milliseconds reuse_delay = std::chrono::seconds(kDefaultReuseDelaySeconds);
};

using IndexRandom = std::function<std::uint64_t()>;

class IndexClaim {
 public:
  IndexClaim(IndexSettings settings, IndexStore& store, IndexFile file, IndexRandom random)
      : settings_(std::move(settings)),
        store_(store),
        file_(std::move(file)),
        random_(std::move(random)),
        reclaim_(settings_, store_) {}

  struct Outcome {
    std::vector<IndexEvent> events;
    std::optional<Error> problem;
  };
  // The caller calls it again at next_ms().
  Outcome Step(const ipam::ClockReading& now, const IndexNeeds& needs);
  // By CLOCK_BOOTTIME.
  [[nodiscard]] std::uint64_t next_ms() const { return next_ms_; }

 private:
  // Of addresses that may be of a former index.
  struct FormerUse {
    std::uint64_t begun_ms = 0;            // by CLOCK_BOOTTIME
    std::uint64_t store_ms = 0;            // those that are held since then or earlier
    std::optional<std::uint64_t> idle_ms;  // since when none is, by CLOCK_BOOTTIME
  };

  struct Taken {
    std::set<std::uint64_t> indices;
    std::map<std::string, std::size_t> holders;  // how many a node has
  };

  Result<void> Work(const IndexNeeds& needs);
  Result<void> ReadNode();
  Result<void> ReadOwn(const IndexNeeds& needs);
  void GiveUp();
  // All claims. Own ones go to former_.
  Result<Taken> List();
  // Sets own_. Whether its claim is to be created: the list has none.
  Result<bool> Choose(const IndexNeeds& needs);
  Result<int> PickFree(const Taken& taken, const IndexNeeds& needs);
  Result<void> Confirm(bool create);
  Result<ClaimEntry> ReadOrCreate(bool create);
  Result<void> Contradict(const std::string& holder);
  Result<void> ReleaseFormer(const IndexNeeds& needs);
  Result<void> KeepFormer();
  Result<void> WatchFormerUse();
  Result<void> RemoveFormer();
  Result<void> Reclaim();
  Result<void> Save(NodeIndex index);
  [[nodiscard]] std::uint64_t ConfirmMs() const;
  [[nodiscard]] std::uint64_t Below(std::uint64_t end) { return random_() % end; }
  void AddEvent(IndexEvent::Kind kind, int index, std::string detail = {});

  const IndexSettings settings_;
  IndexStore& store_;
  const IndexFile file_;
  const IndexRandom random_;

  // Of this step.
  ipam::ClockReading now_;
  Outcome outcome_;
  std::string uid_;

  bool loaded_ = false;
  bool listed_ = false;             // own claims are known
  std::optional<NodeIndex> own_;    // the index that this node has or requests; as on the disk
  std::vector<ClaimEntry> former_;  // own claims besides
  std::optional<FormerUse> former_use_;
  std::size_t conflicts_ = 0;  // in a row
  int failures_ = 0;
  std::uint64_t next_ms_ = 0;
  IndexReclaim reclaim_;
};

}  // namespace railhead::node_index
