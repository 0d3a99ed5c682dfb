#include "cni/fabric/node_index.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "netns/base/node.h"
#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::NodeIndex>;

namespace railhead {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kHint = "check that railheadd runs, and its log about the node's index";

std::string Text(milliseconds time) {
  return std::to_string(std::chrono::floor<seconds>(time).count()) + " s";
}

// nullopt: no clock tells it, because the answer is from another boot, or from after a snapshot of this one.
std::optional<milliseconds> AgeOf(const NodeIndex& index, const NodeIndexClock& now) {
  if (index.boot != now.boot || now.boottime_ms < index.boottime_ms) return std::nullopt;
  return std::max(std::chrono::floor<milliseconds>(now.wall - index.wall),
                  milliseconds(now.boottime_ms - index.boottime_ms));
}

constexpr int kLateConfirmsPerFence = 4;

}  // namespace

Result<NodeIndexClock> ReadNodeIndexClock(const Root& root) {
  NodeIndexClock now;
  now.boot = RH_TRY(BootId(root));
  timespec time{};
  if (::clock_gettime(CLOCK_BOOTTIME, &time) != 0) return FailSys(errno, "reading the boot time clock");
  now.boottime_ms =
      static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
  now.wall = std::chrono::system_clock::now();
  return now;
}

Result<void> NodeIndex::CheckValid(const std::string& name, const NodeIndexClock& now) const {
  if (!claimed || node != name) {
    return Fail(ErrorCode::kBusy, "node '" + name + "' has not claimed an index in the Kubernetes API yet",
                kHint);
  }
  const auto age = AgeOf(*this, now);
  if (!age) {
    return Fail(ErrorCode::kBusy,
                "the Kubernetes API has not confirmed index " + std::to_string(index) +
                    " since this node's boot: another node may have it",
                "try again later: the index is usable again after the Kubernetes API's next answer to "
                "railheadd");
  }
  if (*age < fence) return {};
  return Fail(ErrorCode::kBusy,
              "the Kubernetes API has not confirmed index " + std::to_string(index) + " for " + Text(*age) +
                  ": after fenceSeconds (" + Text(fence) + ") no address is allocated",
              "repair the connection to the API: railheadd asks again by itself");
}

std::vector<NodeIndexProblem> NodeIndex::Problems(const std::string& name, const NodeIndexClock& now) const {
  using Kind = NodeIndexProblem::Kind;
  std::vector<NodeIndexProblem> problems;
  if (auto valid = CheckValid(name, now); !valid) {
    problems.push_back({Kind::kNoIndex, std::move(valid.error())});
  } else if (const auto age = AgeOf(*this, now); age && *age >= fence / kLateConfirmsPerFence) {
    problems.push_back({Kind::kUnconfirmed,
                        {ErrorCode::kUnavailable,
                         "the Kubernetes API has not confirmed index " + std::to_string(index) + " for " +
                             Text(*age) + "; after fenceSeconds (" + Text(fence) + ") pods get no address",
                         kHint, 0}});
  }
  for (const std::string& sentence : unreadable) {
    problems.push_back(
        {Kind::kUnreadable,
         {ErrorCode::kMalformed, "a claim cannot be read, and its index stays taken: " + sentence,
          "kubectl get nodeindices -o yaml; remove it when no node uses its index", 0}});
  }
  for (const std::string& sentence : crowded) {
    problems.push_back(
        {Kind::kCrowded,
         {ErrorCode::kExhausted, sentence + ": a node has one, and those of former indices for some time",
          "see who has that node's token (docs/reference/permissions.md), then remove the "
          "claims that its node-index.json does not name",
          0}});
  }
  if (!reclaim_problem.empty()) {
    problems.push_back({Kind::kReclaim,
                        {ErrorCode::kUnavailable, reclaim_problem,
                         "check the role and admission of manifests/components/node-index, and finalizers "
                         "of the NodeIndex",
                         0}});
  }
  return problems;
}

Result<int> ClaimedIndex(const Root& root, const std::string& name) {
  const NodeIndex stored = RH_TRY(kNodeIndexFile.Read(root)).value_or(NodeIndex{});
  const auto clock = RH_TRY(ReadNodeIndexClock(root));
  RH_TRY(stored.CheckValid(name, clock));
  return stored.index;
}

Result<std::optional<int>> IndexOfThisNode(const Root& root, const Fabric& fabric, const std::string& name) {
  if (const auto listed = fabric.IndexOf(name); listed || !fabric.ClaimsIndices()) return listed;
  return RH_TRY(ClaimedIndex(root, name));
}

}  // namespace railhead
