// This node's index: which part of each rail's subnet is its own.
//
// fabric.json's `nodes` gives it. With `addresses.index.from` kubernetes and without `nodes`, railheadd
// claims an index in the API (deviceplugin/services/node_index/index_claim.h) and keeps it in
// /var/lib/railhead/node-index.json. The file outlives reboots, so a node keeps its index.
//
// The claimed index is used once the API has confirmed the claim in this boot, and for `fence` after the last
// such answer. Other nodes free a claim only after a longer time, and only by their own clock since boot
// (deviceplugin/services/node_index/index_reclaim.h). The age is the larger one of two clocks.
// CLOCK_BOOTTIME cannot be set, and counts a suspend; it stands still while a virtual machine is paused. The
// wall clock counts that. One that was set forward costs one answer of the API, one that was set back changes
// nothing within a boot. Over a boot only the wall clock could tell the age, and a wrong one would hide that
// another node has the index by now.
// Threads: pure functions over files. Errors: kBusy while the claimed index must not be used; those of the
// file.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/json/state_file.h"

namespace railhead {

struct NodeIndexClock {
  std::string boot;
  std::uint64_t boottime_ms = 0;  // CLOCK_BOOTTIME
  std::chrono::system_clock::time_point wall;
};
Result<NodeIndexClock> ReadNodeIndexClock(const Root& root);

struct NodeIndexProblem {
  enum class Kind : std::uint8_t {
    kNoIndex,      // none may be used
    kUnconfirmed,  // for a quarter of the fence
    kUnreadable,   // claims that nobody can read
    kReclaim,      // claims of removed nodes cannot be removed
    kCrowded,      // a node has many claims
  };
  Kind kind = Kind::kNoIndex;
  Error error;
};

struct NodeIndex {
  std::string node;  // a copied disk is under another name
  int index = 0;
  bool claimed = false;  // false: requested, or another node's claim has contradicted it
  // Of the last answer that confirmed the claim, from before its request was sent.
  std::string boot;
  std::uint64_t boottime_ms = 0;
  std::chrono::system_clock::time_point wall;
  std::chrono::seconds fence{0};
  // Of the last check of other nodes' claims (deviceplugin/services/node_index/index_reclaim.h).
  std::vector<std::string> unreadable;  // claims that nobody can read, as sentences
  std::vector<std::string> crowded;     // nodes with many claims, likewise
  std::string reclaim_problem;          // why it failed; "": it did not

  // Whether node `name` may use the index; else why not.
  [[nodiscard]] Result<void> CheckValid(const std::string& name, const NodeIndexClock& now) const;
  // The faults of this index, and of the claims that this node checks.
  [[nodiscard]] std::vector<NodeIndexProblem> Problems(const std::string& name,
                                                       const NodeIndexClock& now) const;
  bool operator==(const NodeIndex&) const = default;
};

inline constexpr StateFile<NodeIndex> kNodeIndexFile{
    .path = "/var/lib/railhead/node-index.json",
    .what = "saving the node's index",
    .writer = "railheadd writes it where addresses.index.from is kubernetes",
};

// The claimed index of node `name`, if it may be used now.
Result<int> ClaimedIndex(const Root& root, const std::string& name);
// nullopt: neither `nodes` nor a claim gives node `name` of this machine an index.
Result<std::optional<int>> IndexOfThisNode(const Root& root, const Fabric& fabric, const std::string& name);

}  // namespace railhead

template <>
struct railhead::Names<railhead::NodeIndexProblem::Kind> {
  using enum NodeIndexProblem::Kind;
  static constexpr std::array kAll = {
      std::pair{"no index", kNoIndex}, std::pair{"not confirmed", kUnconfirmed},
      std::pair{"claim not readable", kUnreadable}, std::pair{"not reclaimed", kReclaim},
      std::pair{"many claims", kCrowded}};
};

template <>
struct railhead::Shape<railhead::NodeIndex> {
  static void List(auto& f) {
    f.Version(1);
    f("node", &NodeIndex::node, kRequiredField);
    f("index", &NodeIndex::index, {.need = Need::kRequired, .min = 0, .max = INT32_MAX});
    f("claimed", &NodeIndex::claimed, kRequiredField);
    f("boot", &NodeIndex::boot);
    f("bootTimeMs", &NodeIndex::boottime_ms);
    f("confirmed", &NodeIndex::wall);
    f("fenceSeconds", &NodeIndex::fence, {.min = 0, .max = 31536000});
    f("unreadableClaims", &NodeIndex::unreadable, kSparseField);
    f("crowdedNodes", &NodeIndex::crowded, kSparseField);
    f("reclaimProblem", &NodeIndex::reclaim_problem, kSparseField);
  }
};
