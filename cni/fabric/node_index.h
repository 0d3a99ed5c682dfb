// This node's index: which part of each rail's subnet is its own.
//
// fabric.json's `nodes` gives it. With a store of type kubernetes and without `nodes`, railheadd claims an
// index there (deviceplugin/services/address_leasing/index_claim.h) and keeps it in
// /var/lib/railhead/node-index.json. The file outlives reboots, so addresses need no answer of the API.
//
// The claimed index is used for `fence` after the API has last confirmed the claim. Other nodes free a claim
// only after a longer time. The age is the larger one of two clocks: CLOCK_BOOTTIME, within one boot, and the
// wall clock. A wall clock that was set forward costs one answer of the API. One that is behind the last
// answer says nothing, so after a reboot the node asks first.
// Threads: pure functions over files. Errors: kBusy while the claimed index must not be used; those of the
// file.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"
#include "netns/json/state_file.h"

namespace railhead {

struct NodeIndexClock {
  std::string boot;
  std::uint64_t boottime_ms = 0;  // CLOCK_BOOTTIME
  std::chrono::system_clock::time_point wall;
};
Result<NodeIndexClock> ReadNodeIndexClock(const Root& root);

struct NodeIndex {
  std::string node;  // a copied disk is under another name
  int index = 0;
  bool claimed = false;  // false: requested, or another node's claim has contradicted it
  // Of the last answer that confirmed the claim, from before its request was sent.
  std::string boot;
  std::uint64_t boottime_ms = 0;
  std::chrono::system_clock::time_point wall;
  std::chrono::seconds fence{0};

  // Whether node `name` may use the index; else why not.
  [[nodiscard]] Result<void> CheckValid(const std::string& name, const NodeIndexClock& now) const;
  bool operator==(const NodeIndex&) const = default;
};

inline constexpr StateFile<NodeIndex> kNodeIndexFile{
    .path = "/var/lib/railhead/node-index.json",
    .what = "saving the node's index",
    .writer = "railheadd writes it with a store of type kubernetes",
};

// nullopt: neither `nodes` nor a claim gives node `name` of this machine an index.
Result<std::optional<int>> IndexOfThisNode(const Root& root, const Fabric& fabric, const std::string& name);

}  // namespace railhead

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
  }
};
