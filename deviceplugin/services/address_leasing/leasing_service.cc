#include "deviceplugin/services/address_leasing/leasing_service.h"

#include <optional>
#include <utility>

#include "deviceplugin/services/address_leasing/etcd_store.h"
#include "deviceplugin/services/address_leasing/kube_store.h"
#include "deviceplugin/services/address_leasing/leasing_loop.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

using Type = MetricType;

void AppendBlocks(Exposition* page, const std::optional<LeaseStatus>& status) {
  page->Begin(Type::kGauge, "railhead_lease_blocks", "Blocks of leased subnets that this node has, by state");
  if (status) {
    for (const auto& [block, count] : status->blocks)
      page->Sample({{"pool", block.first}, {"state", NameOf(block.second)}}, count);
  }
  page->Begin(Type::kGauge, "railhead_lease_free_addresses",
              "Addresses of this node's usable blocks that are neither held nor resting");
  if (status) {
    for (const auto& [pool, free] : status->free) page->Sample({{"pool", pool}}, free);
  }
}

void AppendSigns(Exposition* page, const std::optional<LeaseStatus>& status) {
  page->Begin(
      Type::kGauge, "railhead_lease_renewal_age_seconds",
      "Since the cluster store last took this node's sign of life; absent before the first since boot");
  if (status && status->since_renewal_ms)
    page->Sample({}, static_cast<double>(*status->since_renewal_ms) / 1000);
  page->Begin(Type::kGauge, "railhead_lease_fenced",
              "1 while nothing is handed out from leased blocks, because the cluster store has not answered");
  if (status) page->Sample({}, std::uint64_t{status->fenced ? 1U : 0U});
  page->Begin(Type::kCounter, "railhead_lease_store_calls", "Requests to the cluster store");
  if (status) page->Sample({}, status->store_calls);
  page->Begin(Type::kCounter, "railhead_lease_failed_steps",
              "Steps of leasing that ended early, most often because the cluster store did not answer");
  if (status) page->Sample({}, status->failed_steps);
}

}  // namespace

Result<std::unique_ptr<LeasingLoop>> StartLeasing(const Root& root, const std::string& fabric_path,
                                                  const KubeService& service, Log* log) {
  auto plan = RH_TRY(PlanLeases(root, fabric_path));
  if (!plan) return nullptr;
  const auto [type, settings] = StoreOf(plan->store);
  auto store = RH_TRY(MakeClusterStore(root, type, settings, plan->where + "/" + type, service));
  log->Info("leasing addresses", {{"store", type},
                                  {"node", plan->settings.node},
                                  {"subnets", std::to_string(plan->settings.pools.size())}});
  return LeasingLoop::Start(
      root, std::move(plan->settings), std::move(store),
      [writer = LeasingLog(log)](const Leaser::Outcome& outcome) mutable { writer.Write(outcome); });
}

void LeasingLog::Write(const Leaser::Outcome& outcome) {
  for (const LeaseEvent& event : outcome.events) {
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
  AppendSigns(page, status);
  page->Begin(Type::kCounter, "railhead_lease_events",
              "What happened to this node's blocks and its cluster store");
  if (leasing == nullptr) return;
  for (std::size_t kind = 0; kind < kLeaseEventKinds; ++kind) {
    const auto event = static_cast<LeaseEvent::Kind>(kind);
    page->Sample({{"event", NameOf(event)}}, leasing->Events(event));
  }
}

std::pair<std::string, std::string> StoreOf(const LeaseStoreConfig& store) {
  if (store.type == LeaseStoreType::kEtcd) return {"etcd", store.etcd};
  return {"kubernetes", store.kubernetes};
}

Result<void> CheckLeasing(const Fabric& fabric, const std::string& what) {
  const auto plan = RH_TRY(CheckLeases(fabric, what));
  if (!plan) return {};
  const auto [type, settings] = StoreOf(plan->store);
  return CheckStoreSettings(type, settings, plan->where + "/" + type);
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

Result<Settings> ReadSettings(const std::string& type, const std::string& text, const std::string& what) {
  if (type != "etcd" && type != "kubernetes") {
    return Fail(ErrorCode::kInvalid, what + ": '" + type + "' is no kind of cluster store",
                "etcd or kubernetes");
  }
  const auto document = RH_TRY(JsonDocument::Parse(text.empty() ? "{}" : text, what));
  JsonReader reader = document.Root();
  Settings settings;
  if (type == "etcd") {
    settings.etcd = ReadEtcdConfig(reader);
  } else {
    settings.kubernetes = ReadKubeConfig(reader);
  }
  RH_TRY(reader.status());
  return settings;
}

}  // namespace

Result<std::unique_ptr<ClusterStore>> MakeClusterStore(const Root& root, const std::string& type,
                                                       const std::string& settings, const std::string& what,
                                                       const KubeService& service) {
  const Settings read = RH_TRY(ReadSettings(type, settings, what));
  if (type == "etcd") return MakeEtcdStore(root, read.etcd);
  const KubeAccess access = RH_TRY(FindKubeAccess(root, read.kubernetes, service));
  return MakeKubeStore(access, read.kubernetes.timeout);
}

Result<void> CheckStoreSettings(const std::string& type, const std::string& settings,
                                const std::string& what) {
  RH_TRY(ReadSettings(type, settings, what));
  return {};
}

}  // namespace railhead
