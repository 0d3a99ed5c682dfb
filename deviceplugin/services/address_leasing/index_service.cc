#include "deviceplugin/services/address_leasing/index_service.h"

#include <algorithm>
#include <random>
#include <utility>

#include "deviceplugin/services/address_leasing/kube_store.h"
#include "deviceplugin/services/address_leasing/leasing_service.h"
#include "ipam/store/store.h"
#include "netns/base/node.h"
#include "netns/json/record_io.h"

namespace railhead::address_leasing {
namespace {

constexpr std::chrono::seconds kIndexInterval{5};
constexpr std::chrono::milliseconds kIndexLockTry(200);
constexpr const char* kIndexLockFolder = "/run/railhead/locks";
constexpr const char* kIndexLockFile = "/run/railhead/locks/node-index.lock";

ipam::LeaseRandom MakeIndexRandom() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  return [engine = std::mt19937_64(seed)]() mutable { return engine(); };
}

IndexFile FileBelow(const Root& root) {
  return {[root] { return kNodeIndexFile.Read(root); },
          [root](const NodeIndex& index) { return kNodeIndexFile.Write(root, index); }};
}

}  // namespace

std::optional<IndexNeeds> IndexNeedsOf(const Fabric& fabric, const std::string& name) {
  if (!fabric.keeps_indices || !fabric.UsesIndices()) return std::nullopt;
  IndexNeeds needs;
  needs.listed = fabric.IndexOf(name);
  if (!fabric.nodes.empty() && !needs.listed) return std::nullopt;
  needs.fits = [rails = fabric.rails, name](int index) {
    return std::ranges::all_of(rails, [&](const Rail& rail) {
      return (!rail.node_block && rail.node_ranges.empty()) || !rail.RangesOf(name, index).empty();
    });
  };
  return needs;
}

IndexService::IndexService(Root root, std::string fabric_path, IndexSettings settings,
                           std::unique_ptr<IndexStore> store, Log* log)
    : root_(std::move(root)),
      fabric_path_(std::move(fabric_path)),
      node_(settings.node),
      store_(std::move(store)),
      log_(log),
      claim_(std::move(settings), *store_, FileBelow(root_), MakeIndexRandom()),
      loop_(std::make_unique<PassLoop>(kIndexInterval, PassLoop::Pass{[this] { Step(); }, [] {}})) {}

void IndexService::Step() {
  if (auto stepped = TryStep(); !stepped) Complain(stepped.error());
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
    if (event.kind == IndexEvent::Kind::kLost) {
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
                                                        const KubeService& service, Log* log) {
  const auto fabric = RH_TRY(ReadFabric(root, fabric_path));
  if (!fabric || !fabric->keeps_indices || !fabric->UsesIndices()) return nullptr;
  const auto store =
      RH_TRY(ipam::ParseLeaseSettings(fabric->address_store, fabric_path, ReuseDelayOf(*fabric)));
  const auto config =
      RH_TRY(ParseSection<KubeConfig>(store.kubernetes, fabric_path, "/addresses/store/kubernetes", nullptr));
  const KubeAccess access = RH_TRY(FindKubeAccess(root, config, service));
  IndexSettings settings;
  settings.node = RH_TRY(NodeName(root));
  settings.machine = MachineId(root);
  settings.fence = store.fence;
  settings.reclaim = store.reclaim;
  return std::make_unique<IndexService>(root, fabric_path, std::move(settings),
                                        MakeKubeIndexStore(access, config.timeout), log);
}

}  // namespace railhead::address_leasing
