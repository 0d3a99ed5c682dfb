#include "ipam/lease/leaser.h"

#include <algorithm>

namespace railhead::ipam {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause(1000);
constexpr int kMaxDoublings = 16;

}  // namespace

Leaser::Leaser(LeaseSettings settings, ClusterStore& cluster, LeaseStateStore& lease_state,
               LeaseRandom random)
    : context_(std::move(settings), cluster, lease_state, std::move(random)),
      heartbeat_(context_),
      check_(context_),
      allocator_(context_, heartbeat_, check_),
      returner_(context_),
      dead_nodes_(context_) {}

Leaser::Outcome Leaser::Step(const ClockReading& now) {
  Outcome outcome;
  const bool pausing = boot_id_ == now.boot_id && now.boottime_ms < not_before_ms_;
  context_.now = now;
  if (pausing) {
    outcome.wait = milliseconds(not_before_ms_ - now.boottime_ms);
    return outcome;
  }
  boot_id_ = now.boot_id;
  context_.events.clear();
  context_.more = false;
  context_.calls_at_start = context_.cluster.calls();
  auto done = Work();
  if (done) {
    failures_in_a_row_ = 0;
    not_before_ms_ = 0;
    outcome.wait = UntilNext();
  } else {
    ++failures_in_a_row_;
    ++failed_steps_;
    outcome.wait = Pause();
    not_before_ms_ = now.boottime_ms + static_cast<std::uint64_t>(outcome.wait.count());
    outcome.problem = std::move(done.error());
  }
  outcome.events = std::move(context_.events);
  return outcome;
}

Result<void> Leaser::Work() {
  RH_TRY(heartbeat_.Load());
  RH_TRY(allocator_.StartProvisional());
  if (heartbeat_.IsDue()) RH_TRY(heartbeat_.Renew());
  if (context_.lease.checking) {
    if (!RH_TRY(check_.Run())) return {};
    RH_TRY(heartbeat_.Renew());
    if (context_.lease.checking) {
      context_.more = true;
      return {};
    }
  }
  RH_TRY(allocator_.Confirm());
  RH_TRY(check_.RecheckLost());
  RH_TRY(returner_.CountFree());
  RH_TRY(returner_.Run());
  RH_TRY(allocator_.Allocate(returner_.free()));
  return dead_nodes_.Run();
}

// The pause grows with each failure and differs between nodes. But when the cluster store is back, a node has
// to be back within renewSeconds.
milliseconds Leaser::Pause() {
  const milliseconds longest = context_.settings.times.renew / 2;
  const milliseconds whole =
      std::min(longest, kFirstPause * (1 << std::min(failures_in_a_row_ - 1, kMaxDoublings)));
  const auto half = static_cast<std::uint64_t>(std::max<milliseconds::rep>(whole.count() / 2, 1));
  return milliseconds(half + context_.random() % half);
}

milliseconds Leaser::UntilNext() {
  if (context_.more) return milliseconds(0);
  std::uint64_t next = heartbeat_.next_ms();
  for (const auto& other : {allocator_.next_ms(), dead_nodes_.next_ms()})
    next = std::min(next, other.value_or(next));
  return milliseconds(next > context_.now.boottime_ms ? next - context_.now.boottime_ms : 0);
}

LeaseStatus Leaser::Status(const ClockReading& now) const {
  LeaseStatus status;
  for (const auto& [name, block] : context_.blocks) ++status.blocks[{name.pool, block.state}];
  for (const PoolLayout& layout : context_.settings.pools) status.free[layout.pool()] = 0;
  for (const auto& [pool, free] : returner_.free()) status.free[pool] = free;
  const NodeLease& lease = context_.lease;
  if (!lease.boot_id.empty() && lease.boot_id == now.boot_id)
    status.since_renewal_ms = now.boottime_ms - std::min(now.boottime_ms, lease.renewed_ms);
  status.fenced = !lease.CheckValid(now).has_value();
  status.store_requests = context_.cluster.calls();
  status.failures = failed_steps_;
  return status;
}

}  // namespace railhead::ipam
