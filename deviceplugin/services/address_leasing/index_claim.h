// IndexClaim: this node's index among the nodes of the cluster, claimed in the Kubernetes API.
//
// A claim is an object that the index names: the API creates a name once, so an index has one node. The node
// claims the lowest free index of one list. If another node is first, it waits for a random time, which grows
// with each conflict. Then it lists again, and takes a random one of the 48 lowest free indices. So 1,250
// nodes that start at once need at most five writes each, and leave gaps only among the highest 48 indices
// (tests/unit/deviceplugin/services/address_leasing/index_simulation_test.cc).
//
// The node writes the index to its disk before it creates the claim. It requests another index only after
// the API has answered. So a lost answer, a late request or a kill makes no second claim: the node asks for
// the same index again.
//
// The claim holds the node's name and the uid of its Node object. It has no ownerReferences: the garbage
// collector would remove it with the Node, while pods of a node that is re-created still use its addresses.
// Instead other nodes remove it. Each node checks the few claims that follow its own. It removes one whose
// Node it has seen gone, or under another uid, at every check for reclaimSeconds. Time without an answer does
// not count. It first marks the claim with its name: admission lets no node remove a claim without its mark.
// A node that finds its own claim marked, or under an earlier uid, writes it again. The uid differs after the
// Node was re-created, for example when the machine was re-imaged. It then keeps its index.
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
#include <string_view>
#include <utility>
#include <vector>

#include "cni/fabric/node_index.h"
#include "ipam/lease/cluster_store.h"
#include "ipam/lease/context.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::address_leasing {

// The value of a claim's record. Unknown fields are ignored.
struct IndexRecord {
  std::string node;
  std::string uid;           // of its Node object
  std::string reclaimed_by;  // the node that removes the claim, because the Node is gone

  bool operator==(const IndexRecord&) const = default;
};

// What a claim needs to know of a Node object.
struct ClusterNode {
  std::string uid;
  std::string machine;  // as kubelet reports it; "": not known
};

// Errors and threads: as ClusterStore.
class IndexStore {
 public:
  IndexStore() = default;
  IndexStore(const IndexStore&) = delete;
  IndexStore& operator=(const IndexStore&) = delete;
  virtual ~IndexStore() = default;

  // nullopt: the cluster has no such node.
  virtual Result<std::optional<ClusterNode>> Node(const std::string& name) = 0;
  // At most `limit` claims in the order of their names, after that of `after`.
  virtual Result<std::vector<ipam::LeaseEntry>> Claims(const std::optional<std::uint64_t>& after,
                                                       std::size_t limit) = 0;
  // For LeaseKey::Index().
  virtual ipam::ClusterStore& records() = 0;
};

// The index on the node's disk. Each write is durable when it returns.
struct IndexFile {
  std::function<Result<std::optional<NodeIndex>>()> read;
  std::function<Result<void>(const NodeIndex&)> write;
};

// A change, for the log.
struct IndexEvent {
  enum class Kind : std::uint8_t {
    kClaimed,
    kTakenOver,  // from an earlier Node object of this name
    kConflict,   // another node was first
    kLost,       // another node has an index that this one has used
    kFreed,      // the claim of a node that is gone
  };
  Kind kind;
  int index = 0;
  std::string detail;
};
std::string_view NameOf(IndexEvent::Kind kind);

struct IndexSettings {
  std::string node;
  std::string machine;  // as ClusterNode has it; "": not known
  std::chrono::milliseconds fence = ipam::LeaseTimes{}.fence;
  std::chrono::milliseconds reclaim = ipam::LeaseTimes{}.reclaim;  // 0: no claim is removed
};

// What fabric.json says of indices now.
struct IndexNeeds {
  // The index in `nodes`: the node claims this one or none, so that `nodes` may be removed later.
  std::optional<int> listed;
  // Whether each rail has addresses for the index.
  std::function<bool(int)> fits;
};

class IndexClaim {
 public:
  // No index is higher: that of the last block of an IPv4 subnet with 65,536 of them.
  static constexpr int kLastIndex = 65535;

  IndexClaim(IndexSettings settings, IndexStore& store, IndexFile file, ipam::LeaseRandom random)
      : settings_(std::move(settings)), store_(store), file_(std::move(file)), random_(std::move(random)) {}

  struct Outcome {
    std::vector<IndexEvent> events;
    std::optional<Error> problem;
  };
  // The caller calls it again at next_ms().
  Outcome Step(const ipam::ClockReading& now, const IndexNeeds& needs);
  // By CLOCK_BOOTTIME.
  [[nodiscard]] std::uint64_t next_ms() const { return next_ms_; }

 private:
  struct Observation {
    std::string revision;
    std::uint64_t since_ms = 0;
  };

  Result<void> Work(const IndexNeeds& needs);
  Result<void> ReadNode();
  Result<void> ReadOwn(const IndexNeeds& needs);
  // Own claims go to surplus_; `taken` gets all indices.
  Result<void> List(std::set<std::uint64_t>* taken);
  // Sets own_. Whether its claim is to be created: the list has none.
  Result<bool> Choose(const IndexNeeds& needs);
  Result<int> PickFree(const std::set<std::uint64_t>& taken, const IndexNeeds& needs);
  Result<void> Confirm(bool create);
  Result<ipam::LeaseEntry> ReadOrCreate(bool create);
  Result<void> Contradict(const std::string& holder);
  Result<void> RemoveSurplus();
  Result<void> RemoveGone();
  Result<void> CheckNeighbors();
  Result<std::vector<ipam::LeaseEntry>> Neighbors();
  Result<bool> IsGone(const IndexRecord& record);
  Result<void> Free(const ipam::LeaseEntry& entry, IndexRecord record);
  Result<void> Save(NodeIndex index);
  [[nodiscard]] std::uint64_t ConfirmMs() const;
  [[nodiscard]] std::uint64_t CheckMs() const;
  [[nodiscard]] std::uint64_t Below(std::uint64_t end) { return random_() % end; }
  void AddEvent(IndexEvent::Kind kind, int index, std::string detail = {});

  const IndexSettings settings_;
  IndexStore& store_;
  const IndexFile file_;
  const ipam::LeaseRandom random_;

  // Of this step.
  ipam::ClockReading now_;
  Outcome outcome_;
  std::string uid_;

  bool loaded_ = false;
  bool listed_ = false;                    // own claims are known
  std::optional<NodeIndex> own_;           // the index that this node has or requests; as on the disk
  std::vector<ipam::LeaseEntry> surplus_;  // own claims besides
  std::size_t conflicts_ = 0;              // in a row
  int failures_ = 0;
  std::uint64_t next_ms_ = 0;
  std::map<std::uint64_t, Observation> gone_;  // claims whose Node is gone, by index
  std::optional<std::uint64_t> checked_ms_;
  std::string checked_boot_;
};

std::string Encode(const IndexRecord& record);
Result<IndexRecord> ParseIndexRecord(const ipam::LeaseEntry& entry);

}  // namespace railhead::address_leasing

template <>
struct railhead::Shape<railhead::address_leasing::IndexRecord> {
  using Record = address_leasing::IndexRecord;
  static void List(auto& f) {
    f("node", &Record::node, kRequiredField);
    f("uid", &Record::uid, kRequiredField);
    f("reclaimedBy", &Record::reclaimed_by, kSparseField);
  }
};
