// A node of partition_test. It claims an index as railheadd does, and allocates and releases addresses as
// railhead-ipam does, while it may use its index. It runs until it is killed; a new process continues from
// the node's files.
//
// usage: node_index_partition_node NAME ROOT HISTORY KUBECONFIG SEED
//
// Lines of the history: MILLISECONDS NODE WHAT SUBJECT, by CLOCK_BOOTTIME.
//
//   use INDEX/UNTIL   written before the node's file says so: it may use the index until then
//   stop -            written after the file says that it may use none
//   hold ADDRESS      written after its transaction
//   release ADDRESS   written before its transaction
//   excuse -          see WriteExcuse()
//
// So no line of an address claims more than was true, and none of an index less.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/fabric/node_index.h"
#include "deviceplugin/services/node_index/index_claim.h"
#include "deviceplugin/services/node_index/index_service.h"
#include "deviceplugin/services/node_index/kube_index_store.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "ipam/store/store.h"
#include "netns/base/unique_fd.h"
#include "tests/namespace/node_index/partition.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

constexpr std::uint64_t kMostPods = 4;
constexpr std::chrono::milliseconds kPace(20);

// SIGUSR1: from the first pod on, no pod starts or ends, as on a node that nobody reaches. SIGUSR2: as
// before.
volatile std::sig_atomic_t last_signal = 0;

void KeepSignal(int signal) {
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

// The node's lines, in a file that all nodes append to.
class History {
 public:
  History(std::string path, std::string node)
      : node_(std::move(node)), fd_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
    for (const PartitionLine& line : ReadPartitionHistory(path)) {
      if (line.node != node_) continue;
      if (line.what == "hold") held_.insert(line.subject);
      if (line.what == "release") held_.erase(line.subject);
    }
  }

  void Hold(std::uint64_t time_ms, const std::string& address) {
    if (held_.insert(address).second) Write(time_ms, "hold", address);
  }
  void Release(std::uint64_t time_ms, const std::string& address) {
    if (held_.erase(address) > 0) Write(time_ms, "release", address);
  }
  void Write(std::uint64_t time_ms, const std::string& what, const std::string& subject) {
    const std::string line = std::to_string(time_ms) + " " + node_ + " " + what + " " + subject + "\n";
    if (::write(fd_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) Die("history");
  }

 private:
  const std::string node_;
  UniqueFd fd_;
  std::set<std::string> held_;
};

class Node {
 public:
  Node(const std::string& name, const std::string& root, const std::string& history,
       const std::string& kubeconfig, std::uint64_t seed)
      : name_(name),
        root_(root),
        history_(history, name),
        random_(seed),
        fabric_(Must(ParseFabric(kPartitionFabric, "fabric"))),
        store_(node_index::MakeKubeIndexStore(Must(FindKubeAccess(Root(), {kubeconfig, "", {}}, {})),
                                              kPartitionTimeout)) {
    if (const auto kept = Must(kNodeIndexFile.Read(root_)); kept && kept->claimed)
      confirmed_ms_ = kept->boottime_ms;
    claim_.emplace(
        node_index::IndexSettings{
            .node = name_, .machine = "", .fence = kPartitionFence, .reclaim = kPartitionReclaim},
        *store_,
        node_index::IndexFile{[this] { return kNodeIndexFile.Read(root_); },
                              [this](const NodeIndex& index) { return Save(index); },
                              [this] { return node_index::ReadHeldAddresses(root_); }},
        [this] { return random_(); });
    needs_ = node_index::IndexNeedsOf(fabric_, name_);
    if (!needs_) Die("the fabric asks for no index");
    for (const ipam::AddressRecord& record : Must(Open().List())) {
      if (record.state != ipam::AddressState::kHeld) continue;
      pods_.push_back(record.owner.container);
      history_.Hold(Now().boottime_ms, record.address.ToString());
    }
  }

  [[noreturn]] void Run() {
    for (;;) {
      WriteExcuse();
      if (Now().boottime_ms >= claim_->next_ms()) Step();
      if (last_signal != SIGUSR1 || pods_.empty()) ChangePods();
      std::this_thread::sleep_for(kPace);
    }
  }

 private:
  [[nodiscard]] ipam::ClockReading Now() const { return Must(ipam::ReadClocks(root_)); }
  [[nodiscard]] ipam::AddressStore Open() const { return Must(ipam::AddressStore::Open(root_)); }

  Result<void> Save(const NodeIndex& index) {
    if (index.claimed) {
      const auto fence_ms = static_cast<std::uint64_t>(std::chrono::milliseconds(index.fence).count());
      confirmed_ms_ = index.boottime_ms;
      history_.Write(Now().boottime_ms, "use",
                     std::to_string(index.index) + "/" + std::to_string(index.boottime_ms + fence_ms));
    }
    RH_TRY(kNodeIndexFile.Write(root_, index));
    if (!index.claimed) history_.Write(Now().boottime_ms, "stop", "-");
    return {};
  }

  // Other nodes may free this node's claim once its Node object was gone for reclaimSeconds. They have seen
  // it no earlier than this node's last confirmed claim. What its pods hold then is the only exception: an
  // operator removes a Node after its pods.
  void WriteExcuse() {
    const auto reclaim_ms = static_cast<std::uint64_t>(std::chrono::milliseconds(kPartitionReclaim).count());
    const bool silent = confirmed_ms_ && Now().boottime_ms >= *confirmed_ms_ + reclaim_ms;
    if (silent && !excused_) history_.Write(*confirmed_ms_ + reclaim_ms, "excuse", "-");
    excused_ = silent;
  }

  void Step() {
    const auto outcome = claim_->Step(Now(), *needs_);
    for (const node_index::IndexEvent& event : outcome.events) {
      std::printf("%s: %d %s\n", std::string(NameOf(event.kind)).c_str(), event.index, event.detail.c_str());
    }
    if (outcome.problem) std::printf("problem: %s\n", Describe(*outcome.problem).c_str());
    (void)std::fflush(stdout);
  }

  void ChangePods() {
    if (pods_.size() < wanted_) {
      Allocate();
    } else if (pods_.size() > wanted_) {
      ReleaseOne();
    } else {
      wanted_ = random_() % (kMostPods + 1);
    }
  }

  // As an ADD: the file says whether the node may use its index now.
  void Allocate() {
    const auto index = IndexOfThisNode(root_, fabric_, name_);
    if (!index || !*index) return;
    const Rail& rail = fabric_.rails.front();
    std::vector<std::string> ranges;
    for (const IpRange& range : rail.RangesOf(name_, *index)) ranges.push_back(range.ToString());
    const auto pool =
        MakePool(rail.subnet->ToString(), ranges, static_cast<int>(kPartitionReuseDelay.count()));
    const std::string pod = "pod" + std::to_string(random_());
    const auto record = Open().Allocate({"net", pod, "net1"}, pool);
    if (!record) {
      wanted_ = pods_.size();
      return;
    }
    pods_.push_back(pod);
    history_.Hold(Now().boottime_ms, record->address.ToString());
  }

  void ReleaseOne() {
    std::swap(pods_[random_() % pods_.size()], pods_.back());
    const ipam::AddressOwner owner{"net", pods_.back(), "net1"};
    auto store = Open();
    for (const ipam::AddressRecord& record : Must(store.Find(owner)))
      history_.Release(Now().boottime_ms, record.address.ToString());
    Must(store.Release(owner));
    pods_.pop_back();
  }

  const std::string name_;
  const Root root_;
  History history_;
  std::mt19937_64 random_;
  const Fabric fabric_;
  std::unique_ptr<node_index::IndexStore> store_;
  std::optional<node_index::IndexClaim> claim_;
  std::optional<node_index::IndexNeeds> needs_;
  std::optional<std::uint64_t> confirmed_ms_;
  std::vector<std::string> pods_;
  std::uint64_t wanted_ = 2;
  bool excused_ = false;
};

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() != 6) return 2;
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGUSR1, railhead::testing::KeepSignal);
  (void)std::signal(SIGUSR2, railhead::testing::KeepSignal);
  railhead::testing::Node node(words[1], words[2], words[3], words[4], std::stoull(words[5]));
  node.Run();
}
