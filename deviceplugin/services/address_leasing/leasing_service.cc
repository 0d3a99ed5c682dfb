#include "deviceplugin/services/address_leasing/leasing_service.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "deviceplugin/services/address_leasing/etcd_store.h"
#include "deviceplugin/services/address_leasing/kube_store.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"
#include "netns/json/record_io.h"

namespace railhead::address_leasing {
namespace {

using Type = MetricType;

void AppendBlocks(Exposition* page, const std::optional<ipam::LeaseStatus>& status) {
  page->Begin(Type::kGauge, "railhead_lease_blocks", "Blocks of leased subnets that this node has, by state");
  if (status) {
    for (const auto& [block, count] : status->blocks)
      page->Sample({{"pool", block.first}, {"state", NameOf(block.second)}}, count);
  }
  page->Begin(Type::kGauge, "railhead_lease_free_addresses", "Free addresses of this node's usable blocks");
  if (status) {
    for (const auto& [pool, free] : status->free) page->Sample({{"pool", pool}}, free);
  }
}

void AppendRenewals(Exposition* page, const std::optional<ipam::LeaseStatus>& status) {
  page->Begin(
      Type::kGauge, "railhead_lease_renewal_age_seconds",
      "Time since the cluster store last accepted this node's heartbeat; absent before the first since boot");
  if (status && status->since_renewal_ms)
    page->Sample({}, static_cast<double>(*status->since_renewal_ms) / 1000);
  page->Begin(
      Type::kGauge, "railhead_lease_fenced",
      "1 while no address is allocated from leased blocks, because the cluster store has not answered");
  if (status) page->Sample({}, std::uint64_t{status->fenced ? 1U : 0U});
  page->Begin(Type::kCounter, "railhead_lease_store_requests", "Requests to the cluster store");
  if (status) page->Sample({}, status->store_requests);
  page->Begin(Type::kCounter, "railhead_lease_failures",
              "Steps of leasing that ended early, most often because the cluster store did not answer");
  if (status) page->Sample({}, status->failures);
}

}  // namespace

std::chrono::seconds ReuseDelayOf(const Fabric& fabric) {
  return std::chrono::seconds(fabric.reuse_delay_seconds.value_or(kDefaultReuseDelaySeconds));
}

std::string MachineId(const Root& root) {
  const auto id = ReadAttribute(root.Path("/sys/class/dmi/id/product_uuid"));
  return id && *id ? **id : std::string();
}

Result<std::unique_ptr<LeasingLoop>> StartLeasing(const Root& root, const std::string& fabric_path,
                                                  const KubeService& service, Log* log) {
  auto plan = RH_TRY(PlanLeases(root, fabric_path));
  if (!plan) return nullptr;
  const auto [type, settings] = StoreOf(plan->store);
  auto store = RH_TRY(MakeClusterStore(root, type, settings, fabric_path, service));
  log->Info("leasing addresses", {{"store", type},
                                  {"node", plan->settings.node},
                                  {"subnets", std::to_string(plan->settings.pools.size())}});
  return LeasingLoop::Start(
      root, std::move(plan->settings), std::move(store),
      [writer = LeasingLog(log)](const ipam::Leaser::Outcome& outcome) mutable { writer.Write(outcome); });
}

namespace {

// The part of the fabric that leasing depends on; "": it leases nothing.
std::string LeasedPart(const Fabric& fabric) {
  std::string part;
  for (const Rail& rail : fabric.rails) {
    if (!fabric.Leases(rail)) continue;
    part += rail.subnet->ToString() + (rail.gateway ? " " + rail.gateway->ToString() : "");
    for (const IpRange& range : rail.Excluded()) part += " " + range.ToString();
    part += "\n";
  }
  if (part.empty()) return part;
  return part + std::to_string(ReuseDelayOf(fabric).count()) + fabric.address_store;
}

}  // namespace

Result<void> Leasing::Follow(const std::string& fabric_path, const KubeService& service) {
  auto followed = Replace(fabric_path, service);
  known_problem_ = followed ? "" : followed.error().message;
  return followed;
}

Result<void> Leasing::Replace(const std::string& fabric_path, const KubeService& service) {
  const auto fabric = RH_TRY(ReadFabric(root_, fabric_path));
  std::string part = fabric ? LeasedPart(*fabric) : std::string();
  if (part == followed_) return {};
  std::shared_ptr<LeasingLoop> next = RH_TRY(StartLeasing(root_, fabric_path, service, log_));
  followed_ = std::move(part);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ && next) next->Stop();
    next.swap(loop_);
  }
  // The former loop: the next one leases as soon as this one has given its lock back.
  if (next) next->Stop();
  return {};
}

void Leasing::Update(const std::string& fabric_path, const KubeService& service) {
  const std::string known = known_problem_;
  const auto followed = Follow(fabric_path, service);
  if (!followed && known_problem_ != known)
    log_->Warning("leasing by the changed fabric failed; the former leasing goes on", followed.error());
}

void Leasing::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (loop_) loop_->Stop();
}

bool Leasing::AwaitEnd(std::chrono::milliseconds limit) const {
  const auto running = loop();
  return !running || running->AwaitEnd(limit);
}

std::shared_ptr<LeasingLoop> Leasing::loop() const {
  const std::lock_guard lock(mutex_);
  return loop_;
}

void LeasingLog::Write(const ipam::Leaser::Outcome& outcome) {
  for (const ipam::LeaseEvent& event : outcome.events) {
    const std::string block = event.index ? std::to_string(*event.index) : "";
    if (IsProblem(event.kind)) {
      log_->Warning(NameOf(event.kind),
                    {{"subnet", event.pool}, {"block", block}, {"because", event.detail}});
    } else {
      log_->Info(NameOf(event.kind), {{"subnet", event.pool}, {"block", block}, {"because", event.detail}});
    }
  }
  if (!outcome.problem) {
    known_problem_.clear();
    return;
  }
  if (std::exchange(known_problem_, outcome.problem->message) == outcome.problem->message) {
    log_->Debug("leasing still fails");
  } else {
    log_->Warning("leasing failed, trying again", *outcome.problem);
  }
}

void AppendLeasing(Exposition* page, const LeasingLoop* leasing) {
  const auto status = leasing == nullptr ? std::nullopt : leasing->Status();
  AppendBlocks(page, status);
  AppendRenewals(page, status);
  page->Begin(Type::kCounter, "railhead_lease_events",
              "Changes of this node's blocks and of its cluster store, by event");
  if (leasing == nullptr) return;
  for (std::size_t kind = 0; kind < ipam::kLeaseEventKinds; ++kind) {
    const auto event = static_cast<ipam::LeaseEvent::Kind>(kind);
    page->Sample({{"event", NameOf(event)}}, leasing->Events(event));
  }
}

std::pair<std::string, std::string> StoreOf(const ipam::LeaseStoreConfig& store) {
  return {std::string(WordOf(store.type)),
          store.type == ipam::LeaseStoreType::kEtcd ? store.etcd : store.kubernetes};
}

Result<void> CheckLeasing(const Fabric& fabric, const std::string& what, std::vector<Error>* all) {
  const auto store = RH_TRY(ipam::ParseLeaseSettings(fabric.address_store, what, ReuseDelayOf(fabric), all));
  if (store.type == ipam::LeaseStoreType::kNode) return {};
  const auto [type, settings] = StoreOf(store);
  RH_TRY(CheckStoreSettings(type, settings, what, all));
  RH_TRY(CheckLeases(fabric, what));
  return {};
}

Result<void> CheckLeasing(const Root& root, const std::string& fabric_path) {
  const auto fabric = RH_TRY(ReadFabric(root, fabric_path));
  return fabric ? CheckLeasing(*fabric, fabric_path) : Result<void>();
}

namespace {

struct Settings {
  EtcdConfig etcd;
  KubeConfig kubernetes;
};

Result<Settings> ReadSettings(const std::string& type, const std::string& text, const std::string& what,
                              std::vector<Error>* all = nullptr) {
  if (type != "etcd" && type != "kubernetes") {
    return Fail(ErrorCode::kInvalid, what + ": '" + type + "' is not a type of cluster store",
                "use etcd or kubernetes");
  }
  const std::string pointer = "/addresses/store/" + type;
  const std::string json = text.empty() ? "{}" : text;
  Settings settings;
  if (type == "etcd") {
    settings.etcd = RH_TRY(ParseSection<EtcdConfig>(json, what, pointer, all));
  } else {
    settings.kubernetes = RH_TRY(ParseSection<KubeConfig>(json, what, pointer, all));
  }
  return settings;
}

}  // namespace

Result<std::unique_ptr<ipam::ClusterStore>> MakeClusterStore(const Root& root, const std::string& type,
                                                             const std::string& settings,
                                                             const std::string& what,
                                                             const KubeService& service) {
  const Settings read = RH_TRY(ReadSettings(type, settings, what));
  if (type == "etcd") return MakeEtcdStore(root, read.etcd);
  const KubeAccess access = RH_TRY(FindKubeAccess(root, read.kubernetes, service));
  return MakeKubeStore(access, read.kubernetes.timeout);
}

Result<void> CheckStoreSettings(const std::string& type, const std::string& settings, const std::string& what,
                                std::vector<Error>* all) {
  RH_TRY(ReadSettings(type, settings, what, all));
  return {};
}

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kDirectory = "/var/lib/railhead/ipam";
constexpr std::string_view kStoreFile = "/var/lib/railhead/ipam/store.mdb";
constexpr std::string_view kLockFile = "/var/lib/railhead/ipam/leaser.lock";
constexpr milliseconds kLockTry(200);
constexpr milliseconds kLockPause(1000);
// Many pods at once cause one step.
constexpr milliseconds kLeastPause(1000);
// The thread wakes at least this often, so that Stop() takes effect soon.
constexpr milliseconds kMostPause(60'000);

ipam::LeaseRandom MakeRandom() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
  return [engine = std::mt19937_64(seed)]() mutable { return engine(); };
}

}  // namespace

Result<std::unique_ptr<LeasingLoop>> LeasingLoop::Start(const Root& root, ipam::LeaseSettings settings,
                                                        std::unique_ptr<ipam::ClusterStore> cluster,
                                                        Report report) {
  RH_TRY(MakeStateFolder(root, root.Path(kDirectory)));
  NodeEvents events = RH_TRY(NodeEvents::Open(
      [] { return Result<Uevents>(Fail(ErrorCode::kUnsupported, "hardware does not matter here")); }));
  events.WatchFiles({root.Path(kStoreFile)});
  return std::unique_ptr<LeasingLoop>(
      new LeasingLoop(root, std::move(settings), std::move(cluster), std::move(events), std::move(report)));
}

LeasingLoop::LeasingLoop(const Root& root, ipam::LeaseSettings settings,
                         std::unique_ptr<ipam::ClusterStore> cluster, NodeEvents events, Report report)
    : root_(root),
      fence_ms_(static_cast<std::uint64_t>(settings.times.fence.count())),
      cluster_(std::move(cluster)),
      lease_state_(ipam::OpenLeaseStateStore(
          root, std::chrono::duration_cast<std::chrono::seconds>(settings.times.reuse_delay))),
      leaser_(std::move(settings), *cluster_, *lease_state_, MakeRandom()),
      events_(std::move(events)),
      report_(std::move(report)),
      thread_([this] { Loop(); }) {}

LeasingLoop::~LeasingLoop() {
  Stop();
  thread_.join();
}

void LeasingLoop::Stop() {
  stopped_ = true;
  events_.Wake();
}

bool LeasingLoop::AwaitEnd(milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

void LeasingLoop::Loop() {
  while (!stopped_) {
    const auto held = FileLock::Acquire(root_.Path(kLockFile), kLockTry);
    if (held) {
      Lease();
    } else {
      if (held.error().code != ErrorCode::kTimeout) report_({{}, {}, held.error()});
      events_.Wait(NodeEvents::Clock::now() + kLockPause);
    }
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void LeasingLoop::Lease() {
  while (!stopped_) {
    const milliseconds wait = StepOnce();
    seen_change_ = StoreChanged();
    if (!stopped_ && wait.count() > 0) Wait(std::min(wait, kMostPause));
  }
}

milliseconds LeasingLoop::StepOnce() {
  const auto now = ipam::ReadClocks(root_);
  if (!now) {
    report_({{}, {}, now.error()});
    return kMostPause;
  }
  const ipam::Leaser::Outcome outcome = leaser_.Step(*now);
  const milliseconds wait = outcome.wait;
  Publish(outcome, *now);
  return wait;
}

// Any process that opens the store causes an event. Only a change in the store counts.
void LeasingLoop::Wait(milliseconds wait) {
  const auto now = NodeEvents::Clock::now();
  const auto until = now + wait;
  const auto earliest = std::min(until, now + kLeastPause);
  bool changed = false;
  while (!stopped_ && NodeEvents::Clock::now() < (changed ? earliest : until)) {
    events_.Wait(changed ? earliest : until);
    changed = changed || StoreChanged() != seen_change_;
  }
}

std::int64_t LeasingLoop::StoreChanged() const {
  struct stat status {};
  if (::stat(root_.Path(kStoreFile).c_str(), &status) != 0) return 0;
  return static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

void LeasingLoop::Publish(const ipam::Leaser::Outcome& outcome, const ipam::ClockReading& now) {
  for (const ipam::LeaseEvent& event : outcome.events)
    events_seen_.at(static_cast<std::size_t>(event.kind)).Add();
  {
    const std::lock_guard lock(mutex_);
    status_ = leaser_.Status(now);
    status_ms_ = now.boottime_ms;
  }
  report_(outcome);
}

std::optional<ipam::LeaseStatus> LeasingLoop::Status() const {
  const std::lock_guard lock(mutex_);
  const auto now = ipam::ReadClocks(root_);
  std::optional<ipam::LeaseStatus> status = status_;
  if (!status || !status->since_renewal_ms || !now) return status;
  *status->since_renewal_ms += now->boottime_ms - std::min(now->boottime_ms, status_ms_);
  status->fenced = status->fenced || *status->since_renewal_ms >= fence_ms_;
  return status;
}

namespace {

Result<ipam::PoolLayout> LayoutOf(const Rail& rail, std::uint64_t block_size) {
  ipam::RangeSpec spec;
  spec.subnet = *rail.subnet;
  spec.gateway = rail.gateway;
  spec.exclusions = rail.Excluded();
  return ipam::PoolLayout::Make(RH_TRY(ipam::RangeSet::Make(spec)), block_size);
}

}  // namespace

Result<std::optional<LeasePlan>> CheckLeases(const Fabric& fabric, const std::string& fabric_path) {
  LeasePlan plan;
  plan.store = RH_TRY(ipam::ParseLeaseSettings(fabric.address_store, fabric_path, ReuseDelayOf(fabric)));
  if (plan.store.type == ipam::LeaseStoreType::kNode) return std::nullopt;
  plan.settings.times = {plan.store.renew, plan.store.fence, plan.store.reclaim, ReuseDelayOf(fabric)};
  plan.settings.low_water = plan.store.low_water;
  for (const Rail& rail : fabric.rails) {
    if (!fabric.Leases(rail)) continue;
    plan.settings.pools.push_back(
        RH_TRY_WRAP(LayoutOf(rail, plan.store.block_size), fabric_path + ": rail '" + rail.name + "'"));
  }
  if (plan.settings.pools.empty()) return std::nullopt;
  return plan;
}

Result<std::optional<LeasePlan>> PlanLeases(const Root& root, const std::string& fabric_path) {
  const auto fabric = RH_TRY(ReadFabric(root, fabric_path));
  if (!fabric) return std::nullopt;
  auto plan = RH_TRY(CheckLeases(*fabric, fabric_path));
  if (!plan) return std::nullopt;
  plan->settings.node = RH_TRY(NodeName(root));
  plan->settings.machine = MachineId(root);
  return plan;
}

}  // namespace railhead::address_leasing
