#include "ipam/lease/context.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace railhead {
namespace {

// Few enough that other work of the daemon's thread, its stop above all, is not kept waiting.
constexpr std::uint64_t kCallsPerStep = 32;

}  // namespace

std::string_view NameOf(LeaseEvent::Kind kind) {
  using Kind = LeaseEvent::Kind;
  switch (kind) {
    case Kind::kClaimed:
      return "block claimed";
    case Kind::kUsable:
      return "block usable";
    case Kind::kReturned:
      return "block returned";
    case Kind::kGivenUp:
      return "claim given up";
    case Kind::kTakenBack:
      return "block taken back";
    case Kind::kLost:
      return "block lost";
    case Kind::kRestored:
      return "cluster store restored";
    case Kind::kStranger:
      return "node record not ours";
    case Kind::kWasTaken:
      return "blocks were taken";
    case Kind::kReclaimed:
      return "dead node reclaimed";
    case Kind::kPoolFull:
      return "no block left";
    case Kind::kOtherLayout:
      return "other block size";
    case Kind::kStoodStill:
      return "machine stood still";
  }
  return "unknown";
}

bool IsProblem(LeaseEvent::Kind kind) {
  using Kind = LeaseEvent::Kind;
  constexpr std::array<Kind, 6> kProblems = {Kind::kLost,     Kind::kRestored, Kind::kStranger,
                                             Kind::kWasTaken, Kind::kPoolFull, Kind::kOtherLayout};
  return std::find(kProblems.begin(), kProblems.end(), kind) != kProblems.end();
}

Result<void> LeaseContext::Save(const BookChange& change) {
  RH_TRY(book.Write(change));
  if (change.lease) lease = *change.lease;
  for (const NodeBlock& block : change.put) blocks[NameOf(block)] = block;
  for (const BlockName& name : change.erase) blocks.erase(name);
  return {};
}

Result<void> LeaseContext::SetState(NodeBlock block, BlockState state) {
  block.state = state;
  block.boot_id = now.boot_id;
  block.since_ms = now.boottime_ms;
  return Put(block);
}

bool LeaseContext::Spent() {
  if (cluster.calls() - calls_at_start < kCallsPerStep) return false;
  more = true;
  return true;
}

std::string LeaseContext::Nonce() const {
  std::array<char, 33> text{};
  const std::uint64_t high = random();
  const std::uint64_t low = random();
  (void)std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                      static_cast<unsigned long long>(low));
  return text.data();
}

void LeaseContext::NewInstance() {
  lease.previous = std::exchange(lease.instance, Nonce());
  lease.checking = true;
}

const PoolLayout* LeaseContext::LayoutOf(const std::string& pool) const {
  const auto found = std::find_if(settings.pools.begin(), settings.pools.end(),
                                  [&](const PoolLayout& layout) { return layout.pool() == pool; });
  return found == settings.pools.end() ? nullptr : &*found;
}

void LeaseContext::Tell(LeaseEvent::Kind kind, const NodeBlock& block, std::string detail) {
  events.push_back({kind, block.pool, block.index, std::move(detail)});
}

void LeaseContext::Tell(LeaseEvent::Kind kind, std::string detail) {
  events.push_back({kind, {}, {}, std::move(detail)});
}

}  // namespace railhead
