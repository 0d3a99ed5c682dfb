// A node of partition_test. It leases blocks as railheadd does, and allocates and releases addresses as
// railhead-ipam does. It records which addresses it holds, and from when to when. It runs until it is killed;
// a new process continues from the node's store.
//
// usage: leasing_partition_node NAME ROOT HISTORY STORE-SETTINGS SEED
//
// Lines of the history: MILLISECONDS NODE hold|release|excuse ADDRESS. A hold is written after its
// transaction and a release before it, so that no line claims more than was true.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/services/address_leasing/leasing_service.h"
#include "ipam/lease/leaser.h"
#include "ipam/store/store.h"
#include "netns/base/unique_fd.h"
#include "tests/namespace/cluster_store/partition.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

constexpr std::uint64_t kMostPods = 24;
constexpr std::uint64_t kGreedyPods = 48;
constexpr std::uint64_t kModestPods = 4;
constexpr std::chrono::milliseconds kPace(10);

// SIGUSR1: as many pods as there can be; SIGUSR2: few, so that blocks are returned.
volatile std::sig_atomic_t last_signal = 0;

void SetDemand(int signal) {
  last_signal = signal;
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T Must(Result<T> result) {
  if (!result) Die(Describe(result.error()));
  return std::move(*result);
}

ipam::ClockReading Now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  const auto ms =
      static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
  return {"boot", ms, std::time(nullptr)};
}

// The node's lines, in a file that all nodes append to.
class History {
 public:
  History(std::string path, std::string node)
      : node_(std::move(node)), fd_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
    for (const PartitionLine& line : ReadPartitionHistory(path)) {
      if (line.node != node_) continue;
      if (line.what == "hold") held_.insert(line.address);
      if (line.what == "release") held_.erase(line.address);
    }
  }

  void Hold(const std::string& address) {
    if (held_.insert(address).second) Write(Now().boottime_ms, "hold", address);
  }
  void Release(const std::string& address) {
    if (held_.erase(address) > 0) Write(Now().boottime_ms, "release", address);
  }
  void Excuse(std::uint64_t time_ms) { Write(time_ms, "excuse", "-"); }

 private:
  void Write(std::uint64_t time_ms, const std::string& what, const std::string& address) {
    const std::string line = std::to_string(time_ms) + " " + node_ + " " + what + " " + address + "\n";
    if (::write(fd_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) Die("history");
  }

  const std::string node_;
  UniqueFd fd_;
  std::set<std::string> held_;
};

class Node {
 public:
  Node(const std::string& name, const std::string& root, const std::string& history, const std::string& store,
       std::uint64_t seed)
      : root_(root),
        history_(history, name),
        random_(seed),
        cluster_(Must(address_leasing::MakeClusterStore(Root(), "etcd", store, "settings", {}))),
        lease_state_(OpenLeaseStateStore(root_, kPartitionReuseDelay, Now)) {
    ipam::LeaseSettings settings{name, "machine of " + name, PartitionTimes(), kPartitionLowWater, {}};
    settings.pools.push_back(Must(ipam::PoolLayout::Make(Pool().ranges, kPartitionBlockSize)));
    leaser_.emplace(std::move(settings), *cluster_, *lease_state_, [this] { return random_(); });
    for (const ipam::AddressRecord& record : Must(Must(ipam::AddressStore::Open(root_)).List())) {
      if (record.state != ipam::AddressState::kHeld) continue;
      pods_.push_back(record.owner.container);
      history_.Hold(record.address.ToString());
    }
  }

  [[noreturn]] void Run() {
    for (;;) {
      WriteExcuse();
      if (Now().boottime_ms >= next_step_ms_) Step();
      if (last_signal == SIGUSR1) wanted_ = kGreedyPods;
      if (pods_.size() < wanted_) {
        Allocate();
      } else if (pods_.size() > wanted_) {
        ReleaseOne();
      } else {
        wanted_ = random_() % (last_signal == SIGUSR2 ? kModestPods : kMostPods);
      }
      std::this_thread::sleep_for(kPace);
    }
  }

 private:
  static ipam::AddressPool Pool() {
    ipam::AddressPool pool = MakePool(kPartitionPool, {}, static_cast<int>(kPartitionReuseDelay.count()));
    pool.leased = true;
    return pool;
  }

  // Other nodes may have taken this node's blocks since then. This is the only documented exception.
  void WriteExcuse() {
    const ipam::ClockReading now = Now();
    const auto since = leaser_->Status(now).since_renewal_ms;
    const auto reclaim = static_cast<std::uint64_t>(PartitionTimes().reclaim.count());
    const bool silent = since && *since >= reclaim;
    if (silent && !excused_) history_.Excuse(now.boottime_ms - *since + reclaim);
    excused_ = silent;
  }

  void Step() {
    const auto outcome = leaser_->Step(Now());
    for (const ipam::LeaseEvent& event : outcome.events) {
      std::printf("%s %s\n", std::string(NameOf(event.kind)).c_str(), event.detail.c_str());
    }
    if (outcome.problem) std::printf("problem: %s\n", Describe(*outcome.problem).c_str());
    (void)std::fflush(stdout);
    // The held addresses change all the time here, and railheadd wakes up on such changes. But without an
    // answer the node waits for the leaser's full time: a slow store must not get more requests.
    constexpr std::uint64_t kLongest = 200;
    const auto wait_ms = static_cast<std::uint64_t>(outcome.wait.count());
    next_step_ms_ = Now().boottime_ms + (outcome.problem ? wait_ms : std::min(kLongest, wait_ms));
  }

  void Allocate() {
    const std::string pod = "pod" + std::to_string(random_());
    const std::uint64_t before = cluster_->calls();
    auto record = Must(ipam::AddressStore::Open(root_, Now)).Allocate({"net", pod, "net1"}, Pool());
    if (cluster_->calls() != before) Die("an allocation has asked the cluster store");
    if (!record) {
      wanted_ = pods_.size();
      return;
    }
    pods_.push_back(pod);
    history_.Hold(record->address.ToString());
  }

  void ReleaseOne() {
    std::swap(pods_[random_() % pods_.size()], pods_.back());
    const ipam::AddressOwner owner{"net", pods_.back(), "net1"};
    auto store = Must(ipam::AddressStore::Open(root_, Now));
    for (const ipam::AddressRecord& record : Must(store.Find(owner)))
      history_.Release(record.address.ToString());
    Must(store.Release(owner));
    pods_.pop_back();
  }

  const Root root_;
  History history_;
  std::mt19937_64 random_;
  std::unique_ptr<ipam::ClusterStore> cluster_;
  std::unique_ptr<ipam::LeaseStateStore> lease_state_;
  std::optional<ipam::Leaser> leaser_;
  std::vector<std::string> pods_;
  std::uint64_t wanted_ = 4;
  std::uint64_t next_step_ms_ = 0;
  bool excused_ = false;
};

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() != 6) return 2;
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGUSR1, railhead::testing::SetDemand);
  (void)std::signal(SIGUSR2, railhead::testing::SetDemand);
  railhead::testing::Node node(words[1], words[2], words[3], words[4], std::stoull(words[5]));
  node.Run();
}
