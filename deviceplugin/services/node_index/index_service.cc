#include "deviceplugin/services/node_index/index_service.h"

#include <algorithm>
#include <mutex>
#include <random>
#include <utility>

#include "deviceplugin/node/snapshot/await_node.h"
#include "deviceplugin/services/node_index/index_config.h"
#include "deviceplugin/services/node_index/kube_index_store.h"
#include "deviceplugin/services/node_index/node_addresses.h"
#include "deviceplugin/support/service/pass_pause.h"
#include "ipam/store/held_addresses.h"
#include "ipam/store/store.h"
#include "netns/base/node.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::node_index {
namespace {

constexpr std::chrono::seconds kIndexInterval{5};
constexpr std::chrono::milliseconds kIndexLockTry(200);
constexpr const char* kIndexLockFolder = "/run/railhead/locks";
constexpr const char* kIndexLockFile = "/run/railhead/locks/node-index.lock";

IndexRandom MakeIndexRandom() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  return [engine = std::mt19937_64(seed)]() mutable { return engine(); };
}

IndexFile FileBelow(const Root& root) {
  return {[root] { return kNodeIndexFile.Read(root); },
          [root](const NodeIndex& index) { return kNodeIndexFile.Write(root, index); },
          [root] { return ReadHeldAddresses(root); }};
}

// From the file of the node's index.
void AppendIndexProblems(Exposition& page, const Root& root) {
  // What cannot be read gives the node no index, as for ADD.
  const NodeIndex index = kNodeIndexFile.Read(root).value_or(std::nullopt).value_or(NodeIndex{});
  const auto problems =
      index.Problems(NodeName(root).value_or(""), ReadNodeIndexClock(root).value_or(NodeIndexClock{}));
  for (const auto& [word, kind] : Names<NodeIndexProblem::Kind>::kAll) {
    page.Sample({{"problem", word}},
                std::uint64_t{Contains(problems, kind, &NodeIndexProblem::kind) ? 1U : 0U});
  }
}

}  // namespace

std::optional<IndexNeeds> IndexNeedsOf(const Fabric& fabric, const std::string& name) {
  if (!fabric.index_from_kubernetes || !fabric.UsesIndices()) return std::nullopt;
  IndexNeeds needs;
  needs.listed = fabric.IndexOf(name);
  if (!fabric.nodes.empty() && !needs.listed) return std::nullopt;
  needs.reuse_delay = ReuseDelayOf(fabric);
  for (const Rail& rail : fabric.rails) {
    if (rail.index) needs.kept.insert(*rail.index);
  }
  needs.fits = [fabric, name](int index) {
    if (fabric.of_node && !fabric.of_node->MayHave(index)) return false;
    return std::ranges::all_of(fabric.rails, [&](const Rail& rail) {
      return !rail.UsesIndex() || !WhyNoAddress(fabric, rail, name, index);
    });
  };
  return needs;
}

std::string MachineId(const Root& root) {
  const auto id = ReadAttribute(root.Path("/sys/class/dmi/id/product_uuid"));
  return id && *id ? **id : std::string();
}

Result<HeldAddresses> ReadHeldAddresses(const Root& root) {
  const auto list = RH_TRY(ipam::ListHeld(root));
  HeldAddresses held{.now_ms = list.now.store_ms, .oldest_ms = {}};
  for (const ipam::AddressRecord& record : list.records)
    held.oldest_ms = std::min(held.oldest_ms.value_or(record.since_ms), record.since_ms);
  return held;
}

struct IndexService::Claiming {
  Claiming(const Root& root, IndexSettings settings, std::unique_ptr<IndexStore> of_cluster,
           std::unique_ptr<IndexDirectory> of_others)
      : node(settings.node),
        store(std::move(of_cluster)),
        directory(std::move(of_others)),
        claim(std::move(settings), *store, FileBelow(root), MakeIndexRandom()) {}

  const std::string node;
  const std::unique_ptr<IndexStore> store;
  const std::unique_ptr<IndexDirectory> directory;  // nullptr: nodes need not know each other's index
  IndexClaim claim;
};

IndexService::IndexService(Root root, const Published<NodeSnapshot>& node, KubeService kubernetes,
                           Published<NodeIndices>* claimed, Log* log)
    : root_(std::move(root)), node_(node), kubernetes_(std::move(kubernetes)), claimed_(claimed), log_(log) {}

IndexService::~IndexService() = default;

void IndexService::Register(MetricRegistry& metrics) {
  metrics.Add(MetricType::kGauge, "railhead_node_index_problem",
              "1 while this node's claimed index, or a claim that this node checks, has the problem",
              [this](Exposition& page) {
                if (shows_problems_) AppendIndexProblems(page, root_);
              });
}

Result<void> IndexService::TakeFirst() {
  known_ = node_.Get();
  const auto followed = Follow(*known_);
  if (!followed && known_->of_fabric) return Fail(followed.error());
  if (refused_.IsNew(followed)) log_->Warning("claiming the node's index failed", followed.error());
  return {};
}

Result<void> IndexService::Run(Worker& worker) {
  if (!AwaitNode(worker, node_)) return {};
  RH_TRY(TakeFirst());
  PassPause pause(kIndexInterval);
  while (!worker.StopRequested()) {
    TakeNode();
    if (claiming_) Step();
    const auto until = Worker::Clock::now() + pause.Next();
    const auto seen = known_;
    while (!worker.StopRequested() && node_.Get() == seen && Worker::Clock::now() < until) worker.Wait(until);
  }
  return {};
}

void IndexService::TakeNode() {
  auto now = node_.Get();
  if (now == known_) return;
  known_ = std::move(now);
  const auto followed = Follow(*known_);
  if (refused_.IsNew(followed)) {
    log_->Warning("claiming the node's index by the changed fabric failed; it goes on as before",
                  followed.error());
  }
}

Result<void> IndexService::Follow(const NodeSnapshot& node) {
  if (node.fabric_error) return Fail(*node.fabric_error);
  fabric_ = node.fabric;
  const Fabric* const fabric = fabric_.get();
  std::string part;
  if (fabric != nullptr && fabric->index_from_kubernetes && fabric->UsesIndices())
    part = node.fabric_path + (NeedsDirectory(*fabric) ? "\nall\n" : "\n") + fabric->address_index;
  if (part == followed_) return {};
  std::unique_ptr<Claiming> next;
  if (!part.empty()) {
    next = RH_TRY(Begin(node));
    ++begun_;
  }
  followed_ = std::move(part);
  claiming_ = std::move(next);
  shows_problems_ = claiming_ != nullptr;
  if (!claiming_) lock_.reset();
  return {};
}

Result<std::unique_ptr<IndexService::Claiming>> IndexService::Begin(const NodeSnapshot& node) const {
  const Fabric& fabric = *node.fabric;
  const IndexConfig config = RH_TRY(IndexConfigOf(fabric, node.fabric_path));
  const KubeAccess access = RH_TRY(FindKubeAccess(root_, config.kubernetes, kubernetes_));
  IndexSettings settings;
  settings.node = RH_TRY(NodeName(root_));
  settings.machine = MachineId(root_);
  settings.fence = config.fence;
  settings.reclaim = config.reclaim;
  std::unique_ptr<IndexDirectory> directory;
  if (NeedsDirectory(fabric)) {
    directory =
        std::make_unique<IndexDirectory>(access, config.kubernetes.timeout, MakeIndexRandom(), claimed_);
  }
  return std::make_unique<Claiming>(root_, std::move(settings),
                                    MakeKubeIndexStore(access, config.kubernetes.timeout),
                                    std::move(directory));
}

void IndexService::Step() {
  if (auto stepped = TryStep(); !stepped) Complain(stepped.error());
  if (claiming_->directory != nullptr && lock_) FollowOthers();
}

void IndexService::FollowOthers() {
  const auto own = ClaimedIndex(root_, claiming_->node);
  const auto now = ipam::ReadClocks(root_);
  if (!own || !now) return;
  const auto taken = claiming_->directory->Step(now->boottime_ms, *own);
  if (directory_problem_.IsNew(taken)) {
    log_->Warning("following the other nodes' indices failed, trying again: new nodes are not probed",
                  taken.error());
  } else if (!taken) {
    log_->Debug("following the other nodes' indices still fails");
  }
}

Result<void> IndexService::TryStep() {
  const auto now = RH_TRY(ipam::ReadClocks(root_));
  if (now.boottime_ms < claiming_->claim.next_ms()) return {};
  if (!lock_) {
    RH_TRY(MakeStateFolder(root_, root_.Path(kIndexLockFolder)));
    auto lock = FileLock::Acquire(root_.Path(kIndexLockFile), kIndexLockTry);
    // The other railheadd claims.
    if (!lock && lock.error().code == ErrorCode::kTimeout) return {};
    if (!lock) return Fail(std::move(lock.error()));
    lock_.emplace(std::move(*lock));
  }
  if (const auto needs = IndexNeedsOf(*fabric_, claiming_->node)) Write(claiming_->claim.Step(now, *needs));
  return {};
}

void IndexService::Write(const IndexClaim::Outcome& outcome) {
  for (const IndexEvent& event : outcome.events) {
    const Log::Fields fields = {{"index", std::to_string(event.index)}, {"because", event.detail}};
    if (IsProblem(event.kind)) {
      log_->Warning(NameOf(event.kind), fields);
    } else {
      log_->Info(NameOf(event.kind), fields);
    }
  }
  if (outcome.problem) return Complain(*outcome.problem);
  problem_.Clear();
}

void IndexService::Complain(const Error& problem) {
  if (problem_.IsNew(problem)) {
    log_->Warning("claiming the node's index failed, trying again", problem);
  } else {
    log_->Debug("claiming the node's index still fails");
  }
}

}  // namespace railhead::node_index
