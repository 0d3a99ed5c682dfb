// IndexReclaim: removes the claims of nodes that are gone from the cluster.
//
// Each node checks the claims that follow its own, in the order of their names, until it has passed a few of
// living nodes. So the nearest living node before a claim checks it, however many removed ones are between.
// A removed node's index is free one check after reclaimSeconds, even if most nodes were removed at once
// (tests/unit/deviceplugin/services/node_index/index_simulation_test.cc).
//
// A claim goes once this node has seen its Node gone, or under another uid, at every check for
// reclaimSeconds, and the claim unchanged. That time is of this node's clock since boot, as in client-go's
// leader election. No clocks of two machines are compared, claims have no times, and no wall clock counts:
// setting one frees nothing. Time without an answer does not count. After a gap of two checks, as after a
// suspend, a claim's time begins again.
//
// The claim is first marked with this node's name: admission lets no node remove a claim without its mark. A
// node that is back rewrites its claim, so one that still has the mark has not been used since. Its removal
// is tried again at the next check.
//
// Of a living node at most one claim counts as passed, so a node with many hides none. A node that is found
// to have more than kMostClaimsOfNode is reported.
//
// An object that nobody can read counts as a claim of its index, and is never removed.
//
// Ownership: borrows settings and store. Threads: one. Errors: as IndexStore. A check that could not read
// a claim or Node is made again at the next call. A claim that could not be removed is tried at the next
// check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/node_index/index_store.h"
#include "ipam/store/address_record.h"
#include "netns/base/result.h"

namespace railhead::node_index {

class IndexReclaim {
 public:
  IndexReclaim(IndexSettings settings, IndexStore& store) : settings_(std::move(settings)), store_(store) {}

  // The check, if it is due; without reclaimSeconds it removes nothing. `own`: this node's index. `events`
  // gets what it changed or found.
  Result<void> Run(const ipam::ClockReading& now, std::uint64_t own, std::vector<IndexEvent>* events);

  // As of the last check: claims that nobody can read, as sentences.
  [[nodiscard]] std::vector<std::string> Unreadable() const;
  // Likewise: nodes with too many claims.
  [[nodiscard]] std::vector<std::string> Crowded() const;
  // Why the last check failed; "": it did not.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  struct Observation {
    std::string revision;
    std::uint64_t since_ms = 0;
    std::uint64_t seen_ms = 0;  // at the last check
  };
  struct DueClaim {
    ClaimEntry entry;
    IndexRecord record;
  };

  // The nodes of the claims that a check has passed.
  struct PassedNode {
    std::optional<ClusterNode> node;  // nullopt: it is gone
    std::uint64_t first = 0;          // the index of its first claim
    std::size_t claims = 0;
  };

  Result<void> Check(std::uint64_t own, std::vector<IndexEvent>* events);
  Result<std::vector<DueClaim>> Walk(std::uint64_t own);
  // Whether its node lives and has not been passed before. `due` gets the claim if it is to be removed.
  Result<bool> Examine(const ClaimEntry& entry, std::vector<DueClaim>* due);
  bool IsDue(const ClaimEntry& entry, const IndexRecord& record);
  Result<void> Free(const DueClaim& claim, std::vector<IndexEvent>* events);
  void AddUnreadable(const std::map<std::uint64_t, std::string>& before, std::vector<IndexEvent>* events);
  void AddCrowded(std::vector<IndexEvent>* events);
  [[nodiscard]] std::uint64_t CheckMs() const;

  const IndexSettings settings_;
  IndexStore& store_;

  std::uint64_t now_ms_ = 0;
  std::string boot_;
  std::optional<std::uint64_t> checked_ms_;
  std::map<std::uint64_t, Observation> gone_;        // claims whose Node is gone, by index
  std::map<std::uint64_t, std::string> unreadable_;  // likewise
  std::map<std::string, PassedNode> passed_;         // by the check that runs, by name
  std::map<std::string, std::size_t> crowded_;       // claims of nodes that have too many
  std::string problem_;
};

}  // namespace railhead::node_index
