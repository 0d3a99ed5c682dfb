#include "deviceplugin/services/node_status/node_status_service.h"

#include <random>
#include <utility>

#include "cni/protocol/cni_args.h"
#include "deviceplugin/node/snapshot/await_node.h"
#include "deviceplugin/services/node_status/node_api.h"
#include "netns/base/mutex.h"
#include "netns/base/node.h"

namespace railhead::node_status {
namespace {

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

// Changes within this time go out in one update.
constexpr std::chrono::milliseconds kSettling{500};
constexpr std::chrono::milliseconds kNotYet{2000};
constexpr std::chrono::hours kOff{1};
// Some requests to the API, each with its own limit.
constexpr std::chrono::minutes kLongestUpdate{10};

NodeStatusCounts Sum(const NodeStatusCounts& a, const NodeStatusCounts& b) {
  return {a.requests + b.requests, a.failures + b.failures, a.events_sent + b.events_sent,
          a.events_limited + b.events_limited, a.events_failed + b.events_failed};
}

}  // namespace

NodeStatusService::NodeStatusService(Root root, const Sources& sources, KubeService kubernetes, Log* log)
    : root_(std::move(root)),
      sources_(sources),
      kubernetes_(std::move(kubernetes)),
      log_(log),
      journal_(root_) {}

Result<void> NodeStatusService::Run(Worker& worker) {
  if (!AwaitNode(worker, sources_.node)) return {};
  if (const auto node = sources_.node.Get(); node->rails() != nullptr)
    RH_TRY(ApplySettings(*node->rails(), node->config_path));
  sources_.health.Subscribe(worker);
  sources_.faults.Subscribe(worker);
  sources_.fabric_refused.Subscribe(worker);
  while (!worker.StopRequested()) {
    worker.Busy(kLongestUpdate, "an update of the node's status in the Kubernetes API");
    const Pause pause = Step();
    if (!pause.may_wake) {
      worker.Pause(pause.time);
    } else if (worker.Wait(Worker::Clock::now() + pause.time)) {
      worker.Pause(kSettling);
    }
  }
  return {};
}

NodeStatusService::Pause NodeStatusService::Step() {
  const auto node = sources_.node.Get();
  if (node->rails() == nullptr) {
    SetWriter(nullptr);
    return {kOff};
  }
  const auto applied = ApplySettings(*node->rails(), node->config_path);
  if (complaint_.IsNew(applied))
    log_->Warning("invalid nodeStatus settings; keeping the previous ones", applied.error());
  NodeStatusWriter* const current = writer();
  if (current == nullptr) return {kOff};
  const auto status = Collect(*node);
  if (!status) return {kNotYet};
  {
    const MutexLock lock(mutex_);
    healthy_rails_ = HealthyRails(status->rails);
  }
  const NodeStatusOutcome outcome =
      current->Step(*status, std::chrono::steady_clock::now(), std::chrono::system_clock::now());
  LogOutcome(outcome);
  return {outcome.wait, !outcome.problem};
}

// nullopt: the rails' health is not known yet.
std::optional<NodeStatus> NodeStatusService::Collect(const NodeSnapshot& node) {
  NodeStatus status;
  status.devices = sources_.health.Get()->devices;
  auto rails = RailStates(RailNames(*node.rails()), node.pf_of_rail, status.devices);
  if (!rails) return std::nullopt;
  status.rails = std::move(*rails);
  status.in_pods = InPods();
  const auto faults = sources_.faults.Get();
  for (RailState& rail : status.rails) {
    if (const auto fault = faults->find(rail.rail); fault != faults->end()) rail.unreachable = fault->second;
  }
  status.fabric_refused = *sources_.fabric_refused.Get();
  return status;
}

Result<void> NodeStatusService::ApplySettings(const Fabric& fabric, const std::string& what) {
  NodeStatusSettings settings =
      RH_TRY(ParseNodeStatusSettings(fabric.node_status, what, fabric.rails.size()));
  // No other process would remove a taint that we may have set.
  if (!settings.taint && settings_.taint) settings.taint = TaintSettings{.wanted = false};
  if (settings == settings_) return {};
  std::unique_ptr<NodeStatusWriter> writer;
  if (settings.Any()) {
    const KubeAccess access =
        RH_TRY_WRAP(FindKubeAccess(root_, settings.kubernetes, kubernetes_), "nodeStatus");
    const std::string node = RH_TRY(NodeName(root_));
    log_->Info("reporting node status to the cluster", {{"node", node}, {"api", access.endpoint.ToString()}});
    writer = std::make_unique<NodeStatusWriter>(
        settings, std::make_unique<NodeApi>(access, settings.kubernetes.timeout, node), Seed());
  }
  settings_ = std::move(settings);
  SetWriter(std::move(writer));
  return {};
}

void NodeStatusService::SetWriter(std::unique_ptr<NodeStatusWriter> writer) {
  const MutexLock lock(mutex_);
  if (writer_) earlier_ = Sum(earlier_, writer_->Counts());
  writer_ = std::move(writer);
  healthy_rails_.reset();
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
    if (problem_.Clear()) log_->Info("node status updates recovered");
  } else if (problem_.IsNew(*outcome.problem)) {
    log_->Warning("node status update failed; retrying", *outcome.problem);
  } else {
    log_->Debug("node status updates still fail");
  }
}

NodeStatusWriter* NodeStatusService::writer() const {
  const MutexLock lock(mutex_);
  return writer_.get();
}

NodeStatusCounts NodeStatusService::Counts() const {
  const MutexLock lock(mutex_);
  return writer_ ? Sum(earlier_, writer_->Counts()) : earlier_;
}

void NodeStatusService::Register(MetricRegistry& metrics) {
  metrics.Add(MetricType::kGauge, "railhead_node_healthy_rails",
              "Rails of the fabric whose PF is present and healthy, as reported to the cluster",
              [this](Exposition& page) {
                const MutexLock lock(mutex_);
                if (healthy_rails_) page.Sample({}, static_cast<std::uint64_t>(*healthy_rails_));
              });
  metrics.Add(MetricType::kCounter, "railhead_node_status_requests",
              "Requests to the Kubernetes API for this node's status",
              [this](Exposition& page) { page.Sample({}, Counts().requests); });
  metrics.Add(MetricType::kCounter, "railhead_node_status_failures", "Node status updates that failed",
              [this](Exposition& page) { page.Sample({}, Counts().failures); });
  metrics.Add(MetricType::kCounter, "railhead_node_status_events",
              "Events for pods and the node: sent, limited because there were too many, or failed",
              [this](Exposition& page) {
                const NodeStatusCounts counts = Counts();
                page.Sample({{"outcome", "sent"}}, counts.events_sent);
                page.Sample({{"outcome", "limited"}}, counts.events_limited);
                page.Sample({{"outcome", "failed"}}, counts.events_failed);
              });
}

}  // namespace railhead::node_status
