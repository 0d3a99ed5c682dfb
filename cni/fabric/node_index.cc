#include "cni/fabric/node_index.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

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

// nullopt: no clock tells it.
std::optional<milliseconds> AgeOf(const NodeIndex& index, const NodeIndexClock& now) {
  const auto by_wall = std::chrono::floor<milliseconds>(now.wall - index.wall);
  if (index.boot == now.boot && now.boottime_ms >= index.boottime_ms)
    return std::max(by_wall, milliseconds(now.boottime_ms - index.boottime_ms));
  // The file has whole seconds.
  if (by_wall < -seconds(1)) return std::nullopt;
  return by_wall;
}

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
                "the clock is behind the last answer that confirmed index " + std::to_string(index) +
                    ": this node may have lost it",
                "try again later: the index is usable again after the Kubernetes API's next answer to "
                "railheadd");
  }
  if (*age < fence) return {};
  return Fail(ErrorCode::kBusy,
              "the Kubernetes API has not confirmed index " + std::to_string(index) + " for " + Text(*age) +
                  ": after fenceSeconds (" + Text(fence) + ") no address is allocated",
              "repair the connection to the API: railheadd asks again by itself");
}

Result<std::optional<int>> IndexOfThisNode(const Root& root, const Fabric& fabric, const std::string& name) {
  if (const auto listed = fabric.IndexOf(name); listed || !fabric.ClaimsIndices()) return listed;
  const NodeIndex stored = RH_TRY(kNodeIndexFile.Read(root)).value_or(NodeIndex{});
  const auto clock = RH_TRY(ReadNodeIndexClock(root));
  RH_TRY(stored.CheckValid(name, clock));
  return stored.index;
}

}  // namespace railhead
