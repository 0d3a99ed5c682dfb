// The claims of indices in the cluster: their records, and the store that has them and the nodes. Also the
// settings and events of the parts that claim them and remove them (index_claim.h, index_reclaim.h).
//
// Threads: values. Errors: ParseIndexRecord: kMalformed, naming the object.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  static constexpr std::size_t kMostClaims = 500;  // to ask for at once

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

std::string Encode(const IndexRecord& record);
Result<IndexRecord> ParseIndexRecord(const ipam::LeaseEntry& entry);

// A change, for the log.
struct IndexEvent {
  enum class Kind : std::uint8_t {
    kClaimed,
    kTakenOver,  // from an earlier Node object of this name
    kConflict,   // another node was first
    kLost,       // another node has an index that this one has used
    kUnfit,      // a rail has lost its addresses for it
    kReleased,   // a former index of this node
    kFreed,      // the claim of a node that is gone
    kUnreadable,
  };
  Kind kind;
  int index = 0;
  std::string detail;
};
std::string_view NameOf(IndexEvent::Kind kind);
// Whether an operator has to act.
bool IsProblem(IndexEvent::Kind kind);

struct IndexSettings {
  std::string node;
  std::string machine;  // as ClusterNode has it; "": not known
  std::chrono::milliseconds fence = ipam::LeaseTimes{}.fence;
  std::chrono::milliseconds reclaim = ipam::LeaseTimes{}.reclaim;  // 0: no claim is removed
};

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
