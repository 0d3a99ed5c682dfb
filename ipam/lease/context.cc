#include "ipam/lease/context.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <utility>

#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::ipam {
namespace {

// Few enough that other work of the daemon's thread, above all its stop, does not wait long.
constexpr std::uint64_t kCallsPerStep = 32;

}  // namespace

std::string_view NameOf(LeaseEvent::Kind kind) {
  using Kind = LeaseEvent::Kind;
  switch (kind) {
    case Kind::kAllocated:
      return "block allocated";
    case Kind::kUsable:
      return "block usable";
    case Kind::kReturned:
      return "block returned";
    case Kind::kAbandoned:
      return "block allocation abandoned";
    case Kind::kReacquired:
      return "block reacquired";
    case Kind::kLost:
      return "block lost";
    case Kind::kRestored:
      return "cluster store restored";
    case Kind::kUnknownWriter:
      return "node record has unknown writer";
    case Kind::kReclaimedByOthers:
      return "blocks reclaimed by others";
    case Kind::kDeadNodeReclaimed:
      return "dead node reclaimed";
    case Kind::kPoolFull:
      return "no block left";
    case Kind::kOtherBlockSize:
      return "other block size";
    case Kind::kMachinePaused:
      return "machine was paused";
  }
  return "unknown";
}

bool IsProblem(LeaseEvent::Kind kind) {
  using Kind = LeaseEvent::Kind;
  constexpr std::array<Kind, 6> kProblems = {Kind::kLost,          Kind::kRestored,
                                             Kind::kUnknownWriter, Kind::kReclaimedByOthers,
                                             Kind::kPoolFull,      Kind::kOtherBlockSize};
  return Contains(kProblems, kind);
}

Result<void> LeaseContext::Save(const LeaseStateChange& change) {
  RH_TRY(lease_state.Write(change));
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

bool LeaseContext::OutOfCalls() {
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
  const auto found =
      std::ranges::find_if(settings.pools, [&](const PoolLayout& layout) { return layout.pool() == pool; });
  return found == settings.pools.end() ? nullptr : &*found;
}

void LeaseContext::AddEvent(LeaseEvent::Kind kind, const NodeBlock& block, std::string detail) {
  events.push_back({kind, block.pool, block.index, std::move(detail)});
}

void LeaseContext::AddEvent(LeaseEvent::Kind kind, std::string detail) {
  events.push_back({kind, {}, {}, std::move(detail)});
}

Result<LeaseStoreConfig> ParseLeaseSettings(const std::string& json, const std::string& what,
                                            std::chrono::seconds reuse_delay, std::vector<Error>* all) {
  return ParseSection<LeaseStoreConfig>(
      json, what, "/addresses/store", all,
      [&](const LeaseStoreConfig& config, const record::Complain& complain) {
        if (config.reclaim.count() == 0 || config.reclaim > reuse_delay) return;
        complain("reclaimSeconds",
                 "is not more than reuseDelaySeconds (" + std::to_string(reuse_delay.count()) + ")",
                 "addresses that a dead node released last have their reuse delay, too");
      });
}

}  // namespace railhead::ipam

void railhead::Shape<railhead::ipam::LeaseStoreConfig>::Complete(T& config) {
  if (config.low_water == 0) config.low_water = std::max<std::uint64_t>(1, config.block_size / 2);
}

void railhead::Shape<railhead::ipam::LeaseStoreConfig>::Check(const T& config,
                                                              const record::Complain& complain) {
  // A node that renewed just in time is not to be fenced by one lost request.
  constexpr int kRenewalsPerFence = 4;
  if (!std::has_single_bit(config.block_size))
    complain("blockSize", std::to_string(config.block_size) + " is not a power of two", "such as 64");
  if (config.fence < kRenewalsPerFence * config.renew) {
    complain("fenceSeconds", "is less than " + std::to_string(kRenewalsPerFence) + " times renewSeconds",
             "a lost request must not stop a node");
  }
  if (config.reclaim.count() != 0 && config.reclaim < 2 * config.fence) {
    complain("reclaimSeconds", "is less than twice fenceSeconds",
             "a node stops allocating long before others reclaim its blocks; 0: they never do");
  }
}
