// The claims of indices in the cluster: their records, and the store that has them and the nodes. Also the
// settings and events of the parts that claim them and remove them (index_claim.h, index_reclaim.h).
//
// Every operation of the store is linearizable and one request. There is one claim of an index: Create()
// fails when it exists. Only a caller that has read the latest state of a claim can replace or remove it.
// Threads: one caller at a time; calls block until their deadline at most. Errors: kConflict when the claim
// has changed since the caller read it, is gone, or, for Create, exists; then nothing has changed. Also
// kPermission and kInvalid when the store refuses; kMalformed for an invalid answer. After kTimeout and
// kUnavailable the change may have been made: read the claim. ParseIndexRecord: kMalformed, naming the
// object.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::node_index {

// No index is higher: that of the last block of an IPv4 subnet with 65,536 of them.
inline constexpr std::uint64_t kLastIndex = 65535;

// A node has one claim, and for some time those of its former indices. No admission policy can count: more of
// one node are a fault, or an attacker's who has its token.
inline constexpr std::size_t kMostClaimsOfNode = 4;

// A claim as the store has it.
struct ClaimEntry {
  std::uint64_t index = 0;
  std::string value;     // a JSON object
  std::string revision;  // the store's; means nothing but "this very state"

  bool operator==(const ClaimEntry&) const = default;
};

// The value of a claim. Unknown fields are ignored: a newer version may be at work on another node.
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
  virtual Result<std::vector<ClaimEntry>> Claims(const std::optional<std::uint64_t>& after,
                                                 std::size_t limit) = 0;
  // nullopt: nobody has claimed the index.
  virtual Result<std::optional<ClaimEntry>> Get(std::uint64_t index) = 0;
  virtual Result<ClaimEntry> Create(std::uint64_t index, const std::string& value) = 0;
  virtual Result<ClaimEntry> Update(const ClaimEntry& seen, const std::string& value) = 0;
  virtual Result<void> Remove(const ClaimEntry& seen) = 0;
};

std::string Encode(const IndexRecord& record);
Result<IndexRecord> ParseIndexRecord(const ClaimEntry& entry);

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
    kCrowded,  // a node has more than kMostClaimsOfNode claims
  };
  Kind kind;
  int index = 0;
  std::string detail;
};
std::string_view NameOf(IndexEvent::Kind kind);
// Whether an operator has to act.
bool IsProblem(IndexEvent::Kind kind);

inline constexpr std::chrono::hours kDefaultFence{12};    // without an answer, the index is not used
inline constexpr std::chrono::hours kDefaultReclaim{24};  // of a Node that is gone, then its claim is removed

struct IndexSettings {
  std::string node;
  std::string machine;  // as ClusterNode has it; "": not known
  std::chrono::milliseconds fence = kDefaultFence;
  std::chrono::milliseconds reclaim = kDefaultReclaim;  // 0: no claim is removed
};

}  // namespace railhead::node_index

template <>
struct railhead::Shape<railhead::node_index::IndexRecord> {
  using Record = node_index::IndexRecord;
  static void List(auto& f) {
    f("node", &Record::node, kRequiredField);
    f("uid", &Record::uid, kRequiredField);
    f("reclaimedBy", &Record::reclaimed_by, kSparseField);
  }
};
