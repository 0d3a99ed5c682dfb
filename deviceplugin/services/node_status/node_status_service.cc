#include "deviceplugin/services/node_status/node_status_service.h"

#include <random>
#include <utility>

#include "cni/protocol/plugin.h"
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

Isolation::Isolation(const Root& root, Log* log) : root_(root), log_(log), journal_(root) {}

Result<void> Isolation::Start(const resources::Plan& plan, const KubeService& service, Sources sources) {
  sources_ = std::move(sources);
  service_ = service;
  if (plan.of_fabric) {
    const auto fabric = RH_TRY(ReadFabric(root_, plan.config_path));
    if (fabric) RH_TRY(Follow(*fabric, plan.config_path));
  }
  const std::lock_guard lock(mutex_);
  if (!plan_) plan_ = plan;
  loop_ = std::make_shared<IsolationLoop>([this] { return Look(); },
                                          [this](const IsolationOutcome& outcome) { Write(outcome); });
  return {};
}

Result<void> Isolation::Follow(const Fabric& fabric, const std::string& what) {
  IsolationSettings settings = RH_TRY(ParseIsolation(fabric.isolation, what, fabric.rails.size()));
  // Nobody else would take away the taint that we may have set.
  if (!settings.taint && settings_.taint) settings.taint = TaintSettings{.wanted = false};
  if (settings == settings_) return {};
  std::shared_ptr<Isolator> isolator;
  if (settings.Any()) {
    const KubeAccess access = RH_TRY_WRAP(FindKubeAccess(root_, settings.kubernetes, service_), "isolation");
    const std::string node = RH_TRY(NodeName(root_));
    log_->Info("telling the cluster of bad rails", {{"node", node}, {"api", access.endpoint.ToString()}});
    isolator = std::make_shared<Isolator>(
        settings, std::make_unique<NodeApi>(access, settings.kubernetes.timeout, node), Seed());
  }
  settings_ = std::move(settings);
  isolator_ = std::move(isolator);
  return {};
}

void Isolation::Planned(const resources::Plan& plan) {
  {
    const std::lock_guard lock(mutex_);
    plan_ = plan;
  }
  HealthChanged();
}

void Isolation::HealthChanged() {
  if (const auto running = loop()) running->Wake();
}

void Isolation::Stop() {
  if (const auto running = loop()) running->Stop();
}

bool Isolation::AwaitEnd(std::chrono::milliseconds limit) {
  const auto running = loop();
  return !running || running->AwaitEnd(limit);
}

std::shared_ptr<IsolationLoop> Isolation::loop() const {
  const std::lock_guard lock(mutex_);
  return loop_;
}

std::optional<IsolationTurn> Isolation::Look() {
  if (sources_.stands_by()) return std::nullopt;
  std::optional<resources::Plan> plan;
  {
    const std::lock_guard lock(mutex_);
    plan = plan_;
  }
  if (!plan) return std::nullopt;
  if (!plan->of_fabric) return IsolationTurn{};
  // Why it cannot be read is told by who plans.
  const auto fabric = ReadFabric(root_, plan->config_path);
  if (!fabric || !*fabric) return std::nullopt;
  Complain(Follow(**fabric, plan->config_path));
  if (!isolator_) return IsolationTurn{};
  IsolationTurn turn;
  turn.isolator = isolator_;
  turn.situation.devices = sources_.health();
  auto rails = RailStates(RailNames(**fabric), resources::PfsOfRails(**fabric, *plan->inventory),
                          turn.situation.devices);
  if (!rails) return std::nullopt;
  turn.situation.rails = std::move(*rails);
  turn.situation.in_pods = InPods();
  const bool wanted = settings_.taint && WantsTaint(*settings_.taint, turn.situation.rails);
  turn.situation.may_taint = sources_.may_taint(wanted);
  return turn;
}

void Isolation::Complain(const Result<void>& followed) {
  const std::string message = followed ? "" : followed.error().message;
  if (std::exchange(complaint_, message) != message && !followed)
    log_->Warning("the cluster is told of bad rails as before: the new settings are wrong", followed.error());
}

std::map<std::string, PodDevice> Isolation::InPods() {
  std::map<std::string, PodDevice> in_pods;
  const auto view = journal_.Read();
  if (!view) return in_pods;
  for (const auto& entry : view->entries) {
    for (const AttachedDevice& link : entry->devices) in_pods.emplace(link.device, PodOf(*entry, link));
  }
  return in_pods;
}

void Isolation::Write(const IsolationOutcome& outcome) {
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
    log_->Info(*outcome.tainted ? "the node is tainted" : "the node's taint is taken away");
  if (!outcome.problem) {
    if (!std::exchange(known_problem_, std::string()).empty())
      log_->Info("the cluster hears of bad rails again");
    return;
  }
  if (std::exchange(known_problem_, outcome.problem->message) == outcome.problem->message) {
    log_->Debug("telling the cluster of bad rails still fails");
  } else {
    log_->Warning("the cluster does not hear of bad rails, trying again", *outcome.problem);
  }
}

void Isolation::Append(Exposition* page) const {
  const auto running = loop();
  std::optional<IsolationStatus> status;
  if (running) status = running->Status();
  page->Begin(Type::kGauge, "railhead_isolation_whole_rails",
              "Rails of the fabric whose PF is there and healthy, as the cluster is told");
  if (status && status->whole_rails) page->Sample({}, static_cast<std::uint64_t>(*status->whole_rails));
  page->Begin(Type::kCounter, "railhead_isolation_calls",
              "Requests to the Kubernetes API about this node's rails");
  if (status) page->Sample({}, status->counts.calls);
  page->Begin(Type::kCounter, "railhead_isolation_failed_steps",
              "Times that the cluster could not be told of this node's rails");
  if (status) page->Sample({}, status->counts.failed_steps);
  page->Begin(Type::kCounter, "railhead_isolation_events",
              "Events for pods and the node: told, left out since there were many, or failed");
  if (!status) return;
  page->Sample({{"outcome", "told"}}, status->counts.events_told);
  page->Sample({{"outcome", "limited"}}, status->counts.events_limited);
  page->Sample({{"outcome", "failed"}}, status->counts.events_failed);
}

namespace {

// What changes together is told together.
constexpr std::chrono::milliseconds kSettling{500};
constexpr std::chrono::milliseconds kNotYet{2000};
constexpr std::chrono::hours kOff{1};

IsolationCounts Sum(const IsolationCounts& a, const IsolationCounts& b) {
  return {a.calls + b.calls, a.failed_steps + b.failed_steps, a.events_told + b.events_told,
          a.events_limited + b.events_limited, a.events_failed + b.events_failed};
}

}  // namespace

IsolationLoop::IsolationLoop(Look look, Report report)
    : look_(std::move(look)), report_(std::move(report)), thread_([this] { Loop(); }) {}

IsolationLoop::~IsolationLoop() {
  Stop();
  thread_.join();
}

void IsolationLoop::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void IsolationLoop::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool IsolationLoop::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

IsolationStatus IsolationLoop::Status() const {
  const std::lock_guard lock(mutex_);
  return {isolator_ ? Sum(earlier_, isolator_->Counts()) : earlier_, whole_rails_};
}

void IsolationLoop::Take(const IsolationTurn& turn) {
  const std::lock_guard lock(mutex_);
  if (isolator_ && isolator_ != turn.isolator) earlier_ = Sum(earlier_, isolator_->Counts());
  isolator_ = turn.isolator;
  whole_rails_.reset();
  if (isolator_) whole_rails_ = WholeRails(turn.situation.rails);
}

std::pair<std::chrono::milliseconds, bool> IsolationLoop::StepOnce() {
  const auto turn = look_();
  if (!turn) return {kNotYet, true};
  Take(*turn);
  if (!turn->isolator) return {kOff, true};
  const IsolationOutcome outcome = turn->isolator->Step(turn->situation, std::chrono::steady_clock::now(),
                                                        std::chrono::system_clock::now());
  report_(outcome);
  return {outcome.wait, !outcome.problem};
}

void IsolationLoop::Loop() {
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
