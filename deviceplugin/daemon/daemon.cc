#include "deviceplugin/daemon/daemon.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "deviceplugin/daemon/pages.h"
#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/reachability/reachability_service.h"
#include "netns/base/text.h"

namespace railhead::daemon {
namespace {

// In containers every process is number 1, so the time is part of the name.
std::string SocketTag() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::array<char, 32> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%d-%llx", ::getpid(),
                      static_cast<unsigned long long>(now / std::chrono::milliseconds(1)));
  return buffer.data();
}

// Withholds drained devices, and devices that are not ready, before the first health check: after a boot
// their health is unknown. Withholds all devices if these records cannot be read; the first health check
// reports why.
std::set<std::string> WithheldAtFirst(const Root& root, const resources::Plan& plan) {
  auto withheld = FindAllocatedUnderOtherNames(root, plan.pools);
  auto drained = health::DrainedAmong(root, plan.inventory->All());
  health::UnreadyDevices unready(root);
  if (!drained || !unready.Refresh()) {
    for (const inventory::NicFunction& function : plan.inventory->All()) withheld.insert(function.id);
    return withheld;
  }
  withheld.merge(*drained);
  for (const auto& [device, reason] : unready.reasons()) withheld.insert(device);
  return withheld;
}

// Addresses come from the fabric, whatever configures the devices.
std::string AddressFabricOf(const resources::Plan& plan) {
  return plan.of_fabric ? plan.config_path : kFabricPath;
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::Start(const Root& root, Kernel& kernel, ProbeWorkers& probes,
                                              const CommandLine& line, const NodePlan& node,
                                              Interfaces interfaces, Log* log) {
  // Below another root no driver can be asked.
  auto health = std::make_unique<health::HealthWatch>(
      root, node.health, root.prefix().empty() ? health::MakeKernelDriverSource : nullptr, probes);
  const resources::BoundSlots bound = resources::ReadBoundSlots(root);
  const KubeService kubernetes = interfaces.kubernetes;
  // Starts with the last known health, so that kubelet does not see a device become healthy and then
  // unhealthy.
  std::unique_ptr<Daemon> daemon(
      new Daemon(root, kernel, line,
                 AdvertisementOf(root, node.plan, health.get(), bound, WithheldAtFirst(root, node.plan)),
                 std::move(interfaces), log));
  NodeWatcher::Calls calls;
  calls.advertise = [daemon = daemon.get()](kubelet::Advertisement advertisement) {
    daemon->activity_.SetAdvertisement(advertisement);
    daemon->registrar_.Update(std::move(advertisement));
  };
  calls.view_changed = [&hints = daemon->hints_, &binder = daemon->binder_](late_binding::BindingView view) {
    hints.Update(view.topology, view.accelerators);
    binder.Update(std::move(view));
  };
  calls.withheld_changed = [log](const std::set<std::string>& devices) {
    log->Info("withheld devices: pods have them under another resource's name",
              {{"devices", Join({devices.begin(), devices.end()}, ",")}});
  };
  calls.restore_failed = [log](const Error& error) { log->Warning("restoring an allocation failed", error); };
  calls.plan_changed = [log](const PlanChange& change) { LogPlanChange(log, change); };
  calls.health_changed = [log, &activity = daemon->activity_,
                          &node_status = daemon->node_status_](const health::HealthTick& tick) {
    activity.Judged(tick);
    LogHealth(log, tick);
    node_status.HealthChanged();
  };
  daemon->lldp_ = RH_TRY(StartLldpWatch(root, kernel, &daemon->features_, log));
  daemon->reach_ = RH_TRY(StartReachabilityWatch(
      root, kernel, line.probe_keys, daemon->claimed_, &daemon->rails_,
      [daemon = daemon.get()] { daemon->node_status_.HealthChanged(); }, log));
  calls.plan_made = [daemon = daemon.get(), kubernetes](const resources::Plan& plan) {
    const std::string fabric = plan.of_fabric ? plan.config_path : "";
    daemon->lldp_->Update(plan.inventory, fabric);
    daemon->reach_->Update(plan.inventory, fabric);
    daemon->features_.SetPlan(plan);
    daemon->node_status_.SetPlan(plan);
    daemon->index_.Update(AddressFabricOf(plan), kubernetes);
  };
  const auto claiming = daemon->index_.Follow(AddressFabricOf(node.plan), kubernetes);
  if (!claiming && node.plan.of_fabric) return Fail(claiming.error());
  if (!claiming) log->Warning("claiming the node's index failed", claiming.error());
  daemon->node_watcher_ =
      RH_TRY(NodeWatcher::Start({root, line.source, line.resync_interval, &daemon->activity_}, kernel, probes,
                                node.plan, std::move(health), std::move(calls)));
  daemon->bind_server_ = RH_TRY(late_binding::BindServer::Start(
      root, [daemon = daemon.get()](const BindRequest& request) { return daemon->Bind(request); },
      [log](const BindRequest& request, const Result<Bindings>& answer) {
        LogBinding(log, request, answer);
      }));
  RH_TRY(daemon->pages_->Serve(
      [daemon = daemon.get()](const http::HttpRequest& request) { return daemon->AnswerHttp(request); }));
  // Started last: their threads call the others.
  const auto device_health = [daemon = daemon.get()] { return daemon->node_watcher_->Health(); };
  const auto is_standby = [daemon = daemon.get()] { return IsStandby(daemon->registrar_.Activities()); };
  RH_TRY(daemon->node_status_.Start(
      node.plan, kubernetes,
      {device_health, is_standby,
       [daemon = daemon.get()](const std::string& rail) { return daemon->rails_.FaultOf(rail); },
       [daemon = daemon.get()] { return daemon->follower_ ? daemon->follower_->Refused() : ""; }}));
  if (daemon->follower_) {
    daemon->follower_->Start({is_standby, [daemon = daemon.get()] { daemon->node_status_.HealthChanged(); }});
  }
  return daemon;
}

Daemon::Daemon(const Root& root, Kernel& kernel, const CommandLine& line,
               const kubelet::Advertisement& advertisement, Interfaces interfaces, Log* log)
    : root_(root),
      log_(log),
      systemd_(interfaces.environment, activity_, [this] { return registrar_.Activities(); }),
      report_log_(log),
      reconciler_(root, kernel),
      drift_(root, kernel),
      // Below another root no NIC has counters.
      nics_(root, kernel,
            root.prefix().empty() ? nic_metrics::OpenKernelCounters : nic_metrics::OpenCounterSource()),
      nic_page_([this] { return CollectNics(); }),
      attaches_(root),
      pod_resources_(root),
      hints_([this] { return pod_resources_.List(kAdmissionWaits); }),
      registrar_({root, root.Path(line.kubelet_directory), SocketTag(),
                  [this](const resources::ResourcePool& pool) { return hints_.For(pool); },
                  [this](std::chrono::seconds limit) { RegistrarStep(limit); }},
                 advertisement, [log](const kubelet::Event& event) { LogEvent(log, event); }),
      binder_(root, [this] { return pod_resources_.List(kAddWaits); }),
      features_(root, line.nfd_features, line.resync_interval, log),
      node_status_(root, log),
      index_(root, &claimed_, log),
      follower_(std::move(interfaces.follower)),
      pages_(std::move(interfaces.pages)) {
  activity_.SetAdvertisement(advertisement);
  if (line.reconcile_interval.count() > 0) StartPasses(line.reconcile_interval);
}

void Daemon::StartPasses(std::chrono::seconds reconcile_interval) {
  activity_.heartbeats.reconciler.Within(kLongestPass);
  // A pause is at most a fifth longer than the interval.
  const auto next = reconcile_interval * 6 / 5 + kLongestPass;
  const auto pass = [this, next] {
    const reconcile::ReconcileReport report = reconciler_.Run();
    activity_.heartbeats.reconciler.Within(next);
    activity_.Reconciled(report);
    report_log_.Write(report);
  };
  reconciling_ = std::make_unique<PassLoop>(
      reconcile_interval,
      PassLoop::Pass{pass, [this] { reconciler_.Stop(); }, [this] { return reconciler_.IsUnfinished(); }});
  const auto check = [this] {
    const reconcile::DriftReport report = drift_.Check();
    activity_.Watched(report);
    LogDrift(log_, report);
  };
  watching_ =
      std::make_unique<PassLoop>(2 * reconcile_interval, PassLoop::Pass{check, [this] { drift_.Stop(); }});
}

void Daemon::RegistrarStep(std::chrono::seconds limit) {
  activity_.heartbeats.registrar.Within(limit);
  // Probes are about the process that serves.
  pages_->SetEnabled(!IsStandby(registrar_.Activities()));
}

Result<Bindings> Daemon::Bind(const BindRequest& request) {
  const SharedHeartbeat::Request running(activity_.heartbeats.binder, kLongestBinding);
  const auto begin = std::chrono::steady_clock::now();
  auto answer = binder_.Bind(request);
  activity_.Bound(answer, std::chrono::steady_clock::now() - begin);
  return answer;
}

nic_metrics::NicPageSources Daemon::CollectNics() {
  const auto begin = std::chrono::steady_clock::now();
  nic_metrics::NicPageSources sources;
  sources.report = nics_.Collect(activity_.advertisement());
  sources.health = node_watcher_->Health();
  sources.drifted = activity_.drifted_attachments();
  sources.took = std::chrono::steady_clock::now() - begin;
  for (const Error& problem : sources.report.problems)
    log_->Debug("reading a NIC's counters failed", {{"error", Describe(problem)}});
  return sources;
}

http::HttpResponse Daemon::AnswerHttp(const http::HttpRequest& request) {
  if (request.path == "/healthz") return HealthzAnswer(activity_.heartbeats);
  if (request.path == "/readyz") return ReadyzAnswer(ReadinessOf(activity_, registrar_.Activities()));
  http::HttpResponse response;
  const ExpositionFormat format = FormatAccepted(request.accept);
  if (request.path == "/metrics") {
    response.content_type = ContentTypeOf(format);
    response.body = MetricsPage(
        {root_, &activity_, registrar_.Activities(), node_watcher_->Health(), follower_.get(), &attaches_,
         lldp_->Report(), reach_->Report(), &node_status_, index_.running() != nullptr},
        format);
    return response;
  }
  if (request.path == kNicsPath) {
    response.content_type = ContentTypeOf(format);
    response.body = nic_page_.Get(format);
    return response;
  }
  response.status = 404;
  response.body = kNoSuchPage;
  return response;
}

Result<void> Daemon::ServeKubelet() {
  // Devices that are not restored yet should not be advertised, but kubelet does not wait for ever.
  if (reconciling_ && !reconciling_->AwaitFirst(kFirstPass))
    log_->Debug("serving before the first pass is done");
  activity_.serving = true;
  auto ran = stopping_ ? Result<void>() : registrar_.Run();
  if (!ran) ::kill(::getpid(), SIGTERM);
  return ran;
}

int Daemon::Run(const sigset_t& signals) {
  serving_ = std::async(std::launch::async, [this] { return ServeKubelet(); });
  int signal = AwaitSignal(signals);
  for (; signal == SIGHUP; signal = AwaitSignal(signals)) {
    log_->Info("discovery requested", {{"signal", "HUP"}});
    systemd_.Reloading();
    activity_.node.requests.Add();
    node_watcher_->Discover();
  }
  systemd_.Stopping();
  Stop();
  if (serving_.wait_for(kLastAnswers) == std::future_status::ready) {
    if (const auto served = serving_.get(); !served) {
      log_->Failure("stopped", served.error());
      return kFailed;
    }
  }
  log_->Info("stopped", {{"signal", ::sigabbrev_np(signal)}});
  return kStopped;
}

int Daemon::AwaitSignal(const sigset_t& signals) {
  while (true) {
    systemd_.Tick();
    const auto interval = systemd_.interval();
    int signal = 0;
    if (!interval) {
      sigwait(&signals, &signal);
      return signal;
    }
    const auto seconds = std::chrono::floor<std::chrono::seconds>(*interval);
    const timespec limit{seconds.count(), std::chrono::nanoseconds(*interval - seconds).count()};
    signal = sigtimedwait(&signals, nullptr, &limit);
    if (signal > 0) return signal;
  }
}

std::vector<std::string> Daemon::StillRunning() {
  std::vector<std::string> late;
  const auto await = [&late](const char* part, bool ended) {
    if (!ended) late.emplace_back(part);
  };
  await("kubelet's server", !serving_.valid());
  await("node watcher", node_watcher_->AwaitEnd(kLastStep));
  await("slots", bind_server_->AwaitEnd(kLastStep));
  await("reconciler", !reconciling_ || reconciling_->AwaitEnd(kLastStep));
  await("drift check", !watching_ || watching_->AwaitEnd(kLastStep));
  await("node index", index_.AwaitEnd(kLastStep));
  await("fabric's follower", !follower_ || follower_->AwaitEnd(kLastStep));
  await("LLDP", lldp_->AwaitEnd(kLastStep));
  await("reachability", reach_->AwaitEnd(kLastStep));
  await("node status", node_status_.AwaitEnd(kLastStep));
  await("pages", pages_->AwaitEnd(kLastStep));
  return late;
}

void Daemon::Stop() {
  stopping_ = true;
  node_watcher_->Stop();
  bind_server_->Stop();
  if (reconciling_) reconciling_->Stop();
  if (watching_) watching_->Stop();
  index_.Stop();
  if (follower_) follower_->Stop();
  if (lldp_) lldp_->Stop();
  if (reach_) reach_->Stop();
  node_status_.Stop();
  pages_->Stop();
  registrar_.Stop();
}

}  // namespace railhead::daemon
