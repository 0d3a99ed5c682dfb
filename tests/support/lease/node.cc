#include "tests/support/lease/node.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace railhead::testing {
namespace {

constexpr int kMostSteps = 200;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "test: %s\n", what.c_str());
  std::abort();
}

}  // namespace

TestNode::TestNode(MemoryCluster& cluster, std::string name, TestPools pools, std::uint64_t seed)
    : store_(cluster),
      name_(std::move(name)),
      machine_("machine of " + name_),
      pools_(std::move(pools)),
      random_(seed) {
  Reboot();
  now_.boottime_ms = 10'000;
}

void TestNode::StartDaemon() {
  ipam::LeaseSettings settings{name_, machine_, pools_.times, pools_.low_water, {}};
  for (const std::string& subnet : pools_.subnets) {
    auto layout = ipam::PoolLayout::Make(MakePool(subnet, {}, 0).ranges, pools_.block_size);
    if (!layout) Die(Describe(layout.error()));
    settings.pools.push_back(std::move(*layout));
  }
  leaser_.reset();
  lease_state_ = OpenLeaseStateStore(
      scratch_.root(), std::chrono::duration_cast<std::chrono::seconds>(pools_.times.reuse_delay), clocks());
  leaser_ = std::make_unique<ipam::Leaser>(std::move(settings), store_, *lease_state_,
                                           [this] { return random_(); });
}

void TestNode::Reboot() {
  KillDaemon();
  now_ = {name_ + "-boot-" + std::to_string(++boots_), 5'000,
          kEpoch + static_cast<std::int64_t>(wall_ms_ / 1000)};
}

ipam::Leaser::Outcome TestNode::Settle() {
  ipam::Leaser::Outcome all;
  for (int i = 0; i < kMostSteps; ++i) {
    ipam::Leaser::Outcome one = Step();
    std::move(one.events.begin(), one.events.end(), std::back_inserter(all.events));
    all.wait = one.wait;
    if (one.problem) all.problem = std::move(one.problem);
    if (all.wait.count() > 0) return all;
  }
  Die("the leaser of " + name_ + " never waits");
}

Result<ipam::AddressRecord> TestNode::Allocate(const std::string& pod, const std::string& subnet) {
  auto store = RH_TRY(ipam::AddressStore::Open(scratch_.root(), clocks()));
  ipam::AddressPool pool = MakePool(subnet, {}, static_cast<int>(pools_.times.reuse_delay.count() / 1000));
  pool.leased = true;
  return store.Allocate({"net", pod, "net1"}, pool);
}

Result<std::size_t> TestNode::Release(const std::string& pod) {
  auto store = RH_TRY(ipam::AddressStore::Open(scratch_.root(), clocks()));
  return store.Release({"net", pod, "net1"});
}

std::vector<ipam::NodeBlock> TestNode::Blocks() {
  auto lease_state = ipam::OpenLeaseStateStore(scratch_.root(), std::chrono::seconds(0));
  auto state = lease_state->Read();
  if (!state) Die(Describe(state.error()));
  return std::move(state->blocks);
}

std::vector<ipam::NodeBlock> TestNode::BlocksIn(ipam::BlockState state) {
  std::vector<ipam::NodeBlock> found;
  for (ipam::NodeBlock& block : Blocks()) {
    if (block.state == state) found.push_back(std::move(block));
  }
  return found;
}

}  // namespace railhead::testing
