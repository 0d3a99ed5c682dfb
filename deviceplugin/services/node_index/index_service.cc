#include "deviceplugin/services/node_index/index_service.h"

#include <algorithm>
#include <mutex>
#include <random>
#include <utility>

#include "deviceplugin/services/node_index/index_config.h"
#include "deviceplugin/services/node_index/kube_index_store.h"
#include "deviceplugin/services/node_index/node_addresses.h"
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

}  // namespace

std::optional<IndexNeeds> IndexNeedsOf(const Fabric& fabric, const std::string& name) {
  if (!fabric.index_from_kubernetes || !fabric.UsesIndices()) return std::nullopt;
  IndexNeeds needs;
  needs.listed = fabric.IndexOf(name);
  if (!fabric.nodes.empty() && !needs.listed) return std::nullopt;
  needs.reuse_delay = ReuseDelayOf(fabric);
  needs.fits = [fabric, name](int index) {
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

IndexService::IndexService(Root root, std::string fabric_path, IndexSettings settings,
                           std::unique_ptr<IndexStore> store, std::unique_ptr<IndexDirectory> directory,
                           Log* log)
    : root_(std::move(root)),
      fabric_path_(std::move(fabric_path)),
      node_(settings.node),
      store_(std::move(store)),
      directory_(std::move(directory)),
      log_(log),
      claim_(std::move(settings), *store_, FileBelow(root_), MakeIndexRandom()),
      loop_(std::make_unique<PassLoop>(kIndexInterval, PassLoop::Pass{[this] { Step(); }, [] {}})) {}

void IndexService::Step() {
  if (auto stepped = TryStep(); !stepped) Complain(stepped.error());
  if (directory_ != nullptr && lock_) FollowOthers();
}

void IndexService::FollowOthers() {
  const auto own = ClaimedIndex(root_, node_);
  const auto now = ipam::ReadClocks(root_);
  if (!own || !now) return;
  if (auto taken = directory_->Step(now->boottime_ms, *own); !taken)
    return ComplainOfDirectory(taken.error());
  directory_problem_.clear();
}

void IndexService::ComplainOfDirectory(const Error& problem) {
  if (std::exchange(directory_problem_, problem.message) == problem.message) {
    log_->Debug("following the other nodes' indices still fails");
  } else {
    log_->Warning("following the other nodes' indices failed, trying again: new nodes are not probed",
                  problem);
  }
}

Result<void> IndexService::TryStep() {
  const auto now = RH_TRY(ipam::ReadClocks(root_));
  if (now.boottime_ms < claim_.next_ms()) return {};
  if (!lock_) {
    RH_TRY(MakeStateFolder(root_, root_.Path(kIndexLockFolder)));
    auto lock = FileLock::Acquire(root_.Path(kIndexLockFile), kIndexLockTry);
    // The other railheadd claims.
    if (!lock && lock.error().code == ErrorCode::kTimeout) return {};
    if (!lock) return Fail(std::move(lock.error()));
    lock_.emplace(std::move(*lock));
  }
  const auto fabric = RH_TRY(ReadFabric(root_, fabric_path_));
  const auto needs = fabric ? IndexNeedsOf(*fabric, node_) : std::nullopt;
  if (needs) Write(claim_.Step(now, *needs));
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
  known_problem_.clear();
}

void IndexService::Complain(const Error& problem) {
  if (std::exchange(known_problem_, problem.message) == problem.message) {
    log_->Debug("claiming the node's index still fails");
  } else {
    log_->Warning("claiming the node's index failed, trying again", problem);
  }
}

Result<std::unique_ptr<IndexService>> StartIndexService(const Root& root, const std::string& fabric_path,
                                                        const KubeService& service,
                                                        Published<NodeIndices>* claimed, Log* log) {
  const auto fabric = RH_TRY(ReadFabric(root, fabric_path));
  if (!fabric || !fabric->index_from_kubernetes || !fabric->UsesIndices()) return nullptr;
  const IndexConfig config = RH_TRY(IndexConfigOf(*fabric, fabric_path));
  const KubeAccess access = RH_TRY(FindKubeAccess(root, config.kubernetes, service));
  IndexSettings settings;
  settings.node = RH_TRY(NodeName(root));
  settings.machine = MachineId(root);
  settings.fence = config.fence;
  settings.reclaim = config.reclaim;
  std::unique_ptr<IndexDirectory> directory;
  if (NeedsDirectory(*fabric)) {
    directory =
        std::make_unique<IndexDirectory>(access, config.kubernetes.timeout, MakeIndexRandom(), claimed);
  }
  return std::make_unique<IndexService>(root, fabric_path, std::move(settings),
                                        MakeKubeIndexStore(access, config.kubernetes.timeout),
                                        std::move(directory), log);
}

void AppendNodeIndex(Exposition* page, const Root& root, bool claims) {
  page->Begin(MetricType::kGauge, "railhead_node_index_problem",
              "1 while this node's claimed index, or a claim that this node checks, has the problem");
  if (!claims) return;
  // What cannot be read gives the node no index, as for ADD.
  const NodeIndex index = kNodeIndexFile.Read(root).value_or(std::nullopt).value_or(NodeIndex{});
  const auto problems =
      index.Problems(NodeName(root).value_or(""), ReadNodeIndexClock(root).value_or(NodeIndexClock{}));
  for (const auto& [word, kind] : Names<NodeIndexProblem::Kind>::kAll)
    page->Sample({{"problem", word}},
                 std::uint64_t{Contains(problems, kind, &NodeIndexProblem::kind) ? 1U : 0U});
}

Result<void> IndexClaiming::Follow(const std::string& fabric_path, const KubeService& service) {
  auto followed = Replace(fabric_path, service);
  known_problem_ = followed ? "" : followed.error().message;
  return followed;
}

Result<void> IndexClaiming::Replace(const std::string& fabric_path, const KubeService& service) {
  const auto fabric = RH_TRY(ReadFabric(root_, fabric_path));
  std::string part;
  if (fabric && fabric->index_from_kubernetes && fabric->UsesIndices())
    part = fabric_path + (NeedsDirectory(*fabric) ? "\nall\n" : "\n") + fabric->address_index;
  if (part == followed_) return {};
  std::shared_ptr<IndexService> next = RH_TRY(StartIndexService(root_, fabric_path, service, claimed_, log_));
  followed_ = std::move(part);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ && next) next->Stop();
    next.swap(service_);
  }
  // The former service: the next one claims as soon as this one has given its lock back.
  if (next) next->Stop();
  return {};
}

void IndexClaiming::Update(const std::string& fabric_path, const KubeService& service) {
  const std::string known = known_problem_;
  const auto followed = Follow(fabric_path, service);
  if (!followed && known_problem_ != known)
    log_->Warning("claiming the node's index by the changed fabric failed; it goes on as before",
                  followed.error());
}

void IndexClaiming::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (service_) service_->Stop();
}

bool IndexClaiming::AwaitEnd(std::chrono::milliseconds limit) const {
  const auto current = running();
  return !current || current->AwaitEnd(limit);
}

std::shared_ptr<IndexService> IndexClaiming::running() const {
  const std::lock_guard lock(mutex_);
  return service_;
}

}  // namespace railhead::node_index
