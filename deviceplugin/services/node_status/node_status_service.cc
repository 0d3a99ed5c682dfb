#include "deviceplugin/services/node_status/node_status_service.h"

#include <random>
#include <utility>

#include "cni/protocol/cni_args.h"
#include "deviceplugin/node/resources/advertised.h"
#include "netns/base/node.h"

namespace railhead::node_status {
namespace {

using Type = MetricType;

std::uint64_t Seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

std::vector<std::string> RailNames(const Fabric& fabric) {
  std::vector<std::string> names;
  names.reserve(fabric.rails.size());
  for (const Rail& rail : fabric.rails) names.push_back(rail.name);
  return names;
}

PodDevice PodOf(const JournalEntry& entry, const AttachedDevice& link) {
  PodDevice device;
  const std::string pod = PodName(entry.cni_args);
  if (const std::size_t slash = pod.find('/'); slash != std::string::npos) {
    device.pod_namespace = pod.substr(0, slash);
    device.pod = pod.substr(slash + 1);
  }
  device.uid = PodUid(entry.cni_args);
  device.interface = link.pod_name;
  device.rail = link.rail;
  return device;
}

}  // namespace

NodeStatusService::NodeStatusService(const Root& root, Log* log) : root_(root), log_(log), journal_(root) {}

Result<void> NodeStatusService::Start(const resources::Plan& plan, const KubeService& service,
                                      Sources sources) {
  sources_ = std::move(sources);
  service_ = service;
  if (plan.of_fabric) {
    const auto fabric = RH_TRY(ReadFabric(root_, plan.config_path));
    if (fabric) RH_TRY(ApplySettings(*fabric, plan.config_path));
  }
  const std::lock_guard lock(mutex_);
  if (!plan_) plan_ = plan;
  loop_ = std::make_shared<NodeStatusLoop>([this] { return Collect(); },
                                           [this](const NodeStatusOutcome& outcome) { LogOutcome(outcome); });
  return {};
}

Result<void> NodeStatusService::ApplySettings(const Fabric& fabric, const std::string& what) {
  NodeStatusSettings settings =
      RH_TRY(ParseNodeStatusSettings(fabric.node_status, what, fabric.rails.size()));
  // No other process would remove a taint that we may have set.
  if (!settings.taint && settings_.taint) settings.taint = TaintSettings{.wanted = false};
  if (settings == settings_) return {};
  std::shared_ptr<NodeStatusWriter> writer;
  if (settings.Any()) {
    const KubeAccess access = RH_TRY_WRAP(FindKubeAccess(root_, settings.kubernetes, service_), "nodeStatus");
    const std::string node = RH_TRY(NodeName(root_));
    log_->Info("reporting node status to the cluster", {{"node", node}, {"api", access.endpoint.ToString()}});
    writer = std::make_shared<NodeStatusWriter>(
        settings, std::make_unique<NodeApi>(access, settings.kubernetes.timeout, node), Seed());
  }
  settings_ = std::move(settings);
  writer_ = std::move(writer);
  return {};
}

void NodeStatusService::SetPlan(const resources::Plan& plan) {
  {
    const std::lock_guard lock(mutex_);
    plan_ = plan;
  }
  HealthChanged();
}

void NodeStatusService::HealthChanged() {
  if (const auto running = loop()) running->Wake();
}

void NodeStatusService::Stop() {
  if (const auto running = loop()) running->Stop();
}

bool NodeStatusService::AwaitEnd(std::chrono::milliseconds limit) {
  const auto running = loop();
  return !running || running->AwaitEnd(limit);
}

std::shared_ptr<NodeStatusLoop> NodeStatusService::loop() const {
  const std::lock_guard lock(mutex_);
  return loop_;
}

std::optional<NodeStatusUpdate> NodeStatusService::Collect() {
  if (sources_.is_standby()) return std::nullopt;
  std::optional<resources::Plan> plan;
  {
    const std::lock_guard lock(mutex_);
    plan = plan_;
  }
  if (!plan) return std::nullopt;
  if (!plan->of_fabric) return NodeStatusUpdate{};
  // Another part of railheadd reports why it cannot be read.
  const auto fabric = ReadFabric(root_, plan->config_path);
  if (!fabric || !*fabric) return std::nullopt;
  Complain(ApplySettings(**fabric, plan->config_path));
  if (!writer_) return NodeStatusUpdate{};
  NodeStatusUpdate update;
  update.writer = writer_;
  update.status.devices = sources_.health();
  auto rails = RailStates(RailNames(**fabric), resources::PfsOfRails(**fabric, *plan->inventory),
                          update.status.devices);
  if (!rails) return std::nullopt;
  update.status.rails = std::move(*rails);
  update.status.in_pods = InPods();
  for (RailState& rail : update.status.rails) {
    if (sources_.unreachable) rail.unreachable = sources_.unreachable(rail.rail);
  }
  if (sources_.fabric_refused) update.status.fabric_refused = sources_.fabric_refused();
  return update;
}

void NodeStatusService::Complain(const Result<void>& followed) {
  const std::string message = followed ? "" : followed.error().message;
  if (std::exchange(complaint_, message) != message && !followed)
    log_->Warning("invalid nodeStatus settings; keeping the previous ones", followed.error());
}

std::map<std::string, PodDevice> NodeStatusService::InPods() {
  std::map<std::string, PodDevice> in_pods;
  const auto view = journal_.Read();
  if (!view) return in_pods;
  for (const auto& entry : view->entries) {
    for (const AttachedDevice& link : entry->devices) in_pods.emplace(link.device, PodOf(*entry, link));
  }
  return in_pods;
}

void NodeStatusService::LogOutcome(const NodeStatusOutcome& outcome) {
  if (outcome.condition) {
    const RailsCondition& condition = *outcome.condition;
    const Log::Fields fields = {{"reason", condition.reason}, {"because", condition.message}};
    if (condition.ready) {
      log_->Info("the node's rails are ready", fields);
    } else {
      log_->Warning("the node's rails are not ready", fields);
    }
  }
  if (outcome.tainted)
    log_->Info(*outcome.tainted ? "the node's taint was added" : "the node's taint was removed");
  if (!outcome.problem) {
    if (!std::exchange(known_problem_, std::string()).empty()) log_->Info("node status updates recovered");
    return;
  }
  if (std::exchange(known_problem_, outcome.problem->message) == outcome.problem->message) {
    log_->Debug("node status updates still fail");
  } else {
    log_->Warning("node status update failed; retrying", *outcome.problem);
  }
}

void NodeStatusService::Append(Exposition* page) const {
  const auto running = loop();
  std::optional<NodeStatusSummary> summary;
  if (running) summary = running->Summary();
  page->Begin(Type::kGauge, "railhead_node_healthy_rails",
              "Rails of the fabric whose PF is present and healthy, as reported to the cluster");
  if (summary && summary->healthy_rails)
    page->Sample({}, static_cast<std::uint64_t>(*summary->healthy_rails));
  page->Begin(Type::kCounter, "railhead_node_status_requests",
              "Requests to the Kubernetes API for this node's status");
  if (summary) page->Sample({}, summary->counts.requests);
  page->Begin(Type::kCounter, "railhead_node_status_failures", "Node status updates that failed");
  if (summary) page->Sample({}, summary->counts.failures);
  page->Begin(Type::kCounter, "railhead_node_status_events",
              "Events for pods and the node: sent, limited because there were too many, or failed");
  if (!summary) return;
  page->Sample({{"outcome", "sent"}}, summary->counts.events_sent);
  page->Sample({{"outcome", "limited"}}, summary->counts.events_limited);
  page->Sample({{"outcome", "failed"}}, summary->counts.events_failed);
}

namespace {

// Changes within this time go out in one update.
constexpr std::chrono::milliseconds kSettling{500};
constexpr std::chrono::milliseconds kNotYet{2000};
constexpr std::chrono::hours kOff{1};

NodeStatusCounts Sum(const NodeStatusCounts& a, const NodeStatusCounts& b) {
  return {a.requests + b.requests, a.failures + b.failures, a.events_sent + b.events_sent,
          a.events_limited + b.events_limited, a.events_failed + b.events_failed};
}

}  // namespace

NodeStatusLoop::NodeStatusLoop(Collect collect, Report report)
    : collect_(std::move(collect)), report_(std::move(report)), thread_([this] { Loop(); }) {}

NodeStatusLoop::~NodeStatusLoop() {
  Stop();
  thread_.join();
}

void NodeStatusLoop::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void NodeStatusLoop::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool NodeStatusLoop::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

NodeStatusSummary NodeStatusLoop::Summary() const {
  const std::lock_guard lock(mutex_);
  return {writer_ ? Sum(earlier_, writer_->Counts()) : earlier_, healthy_rails_};
}

void NodeStatusLoop::Take(const NodeStatusUpdate& update) {
  const std::lock_guard lock(mutex_);
  if (writer_ && writer_ != update.writer) earlier_ = Sum(earlier_, writer_->Counts());
  writer_ = update.writer;
  healthy_rails_.reset();
  if (writer_) healthy_rails_ = HealthyRails(update.status.rails);
}

std::pair<std::chrono::milliseconds, bool> NodeStatusLoop::StepOnce() {
  const auto update = collect_();
  if (!update) return {kNotYet, true};
  Take(*update);
  if (!update->writer) return {kOff, true};
  const NodeStatusOutcome outcome = update->writer->Step(update->status, std::chrono::steady_clock::now(),
                                                         std::chrono::system_clock::now());
  report_(outcome);
  return {outcome.wait, !outcome.problem};
}

void NodeStatusLoop::Loop() {
  while (true) {
    const auto [wait, may_wake] = StepOnce();
    std::unique_lock lock(mutex_);
    const bool wakes = may_wake;
    changed_.wait_for(lock, wait, [&] { return stopped_ || (wakes && woken_); });
    if (woken_ && wakes) changed_.wait_for(lock, kSettling, [this] { return stopped_; });
    woken_ = false;
    if (!stopped_) continue;
    ended_ = true;
    changed_.notify_all();
    return;
  }
}

}  // namespace railhead::node_status
