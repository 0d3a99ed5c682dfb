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

// What is drained or not ready is so before health has been looked at for the first time: after a boot
// nothing is known of it. All devices are withheld where the records of it cannot be read; the first look at
// health reports why.
std::set<std::string> WithheldAtFirst(const Root& root, const resources::Plan& plan) {
  auto withheld = GivenUnderOtherNames(root, plan.pools);
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

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::Start(const Root& root, Kernel& kernel, const CommandLine& line,
                                              const NodePlan& node, Outlets outlets, Log* log) {
  // Below another root there are no drivers to ask.
  auto health = std::make_unique<health::HealthWatch>(
      root, node.health, root.prefix().empty() ? health::MakeKernelDriverSource() : nullptr);
  const resources::BoundSlots bound = resources::ReadBoundSlots(root);
  const KubeService kubernetes = outlets.kubernetes;
  // As last known: kubelet must not see a device become healthy and then not.
  std::unique_ptr<Daemon> daemon(new Daemon(
      root, kernel, line, OfferOf(node.plan, health.get(), bound, WithheldAtFirst(root, node.plan)),
      std::move(outlets), log));
  RH_TRY(daemon->budget_.Open(node.plan, kubernetes));
  health->SetRails([&budget = daemon->budget_](const std::string& pf) { return budget.Admit(pf); });
  Advertiser::Calls calls;
  calls.give = [daemon = daemon.get()](kubelet::Offer offer) {
    daemon->activity_.Offered(offer);
    daemon->registrar_.Update(std::move(offer));
  };
  calls.view = [&hints = daemon->hints_, &binder = daemon->binder_](late_binding::BindingView view) {
    hints.Update(view.topology, view.accelerators);
    binder.Update(std::move(view));
  };
  calls.withheld = [log](const std::set<std::string>& devices) {
    log->Info("not given out: pods have them under another resource's name",
              {{"devices", Join({devices.begin(), devices.end()}, ",")}});
  };
  calls.restore_failed = [log](const Error& error) {
    log->Warning("cannot restore what an allocated device had", error);
  };
  calls.plan_changed = [log](const PlanChange& change) { LogPlanChange(log, change); };
  calls.health_changed = [log, &activity = daemon->activity_,
                          &isolation = daemon->isolation_](const health::HealthTick& tick) {
    activity.Judged(tick);
    LogHealth(log, tick);
    isolation.HealthChanged();
  };
  daemon->leaves_ = RH_TRY(StartLeafWatch(root, kernel, &daemon->features_, log));
  daemon->reach_ = RH_TRY(StartReachWatch(root, kernel, line.probe_keys, &daemon->rails_, log));
  calls.planned = [daemon = daemon.get()](const resources::Plan& plan) {
    const std::string fabric = plan.of_fabric ? plan.config_path : "";
    daemon->leaves_->Update(plan.inventory, fabric);
    daemon->reach_->Update(plan.inventory, fabric);
    daemon->features_.Planned(plan);
    daemon->isolation_.Planned(plan);
    daemon->budget_.Planned(plan);
  };
  daemon->advertiser_ =
      RH_TRY(Advertiser::Start({root, line.source, line.resync_interval, &daemon->activity_}, kernel,
                               node.plan, std::move(health), std::move(calls)));
  daemon->bind_server_ = RH_TRY(late_binding::BindServer::Start(
      root, [daemon = daemon.get()](const BindRequest& request) { return daemon->Bind(request); },
      [log](const BindRequest& request, const Result<Bindings>& answer) {
        LogBinding(log, request, answer);
      }));
  // Whatever says which devices there are: addresses are the fabric's.
  auto leasing = address_leasing::StartLeasing(
      root, node.plan.of_fabric ? node.plan.config_path : kFabricPath, kubernetes, log);
  if (leasing) {
    daemon->leasing_ = std::move(*leasing);
  } else if (node.plan.of_fabric) {
    return Fail(std::move(leasing.error()));
  } else {
    log->Warning("addresses are not leased", leasing.error());
  }
  RH_TRY(daemon->pages_->Serve(
      [daemon = daemon.get()](const http::HttpRequest& request) { return daemon->AnswerHttp(request); }));
  // Last: their threads ask the others.
  const auto device_health = [daemon = daemon.get()] { return daemon->advertiser_->Health(); };
  const auto stands_by = [daemon = daemon.get()] { return StandsBy(daemon->registrar_.Activities()); };
  daemon->budget_.Start(
      {device_health, stands_by, [daemon = daemon.get()] { daemon->isolation_.HealthChanged(); }});
  RH_TRY(daemon->isolation_.Start(node.plan, kubernetes,
                                  {device_health, stands_by, [daemon = daemon.get()](bool wanted) {
                                     return daemon->budget_.MayTaint(wanted);
                                   }}));
  return daemon;
}

Daemon::Daemon(const Root& root, Kernel& kernel, const CommandLine& line, const kubelet::Offer& offer,
               Outlets outlets, Log* log)
    : root_(root),
      log_(log),
      service_(outlets.environment, activity_, [this] { return registrar_.Activities(); }),
      report_log_(log),
      reconciler_(root, kernel),
      drift_(root, kernel),
      // Below another root there are no NICs that could count.
      nics_(root, kernel,
            root.prefix().empty() ? nic_metrics::OpenKernelCounters : nic_metrics::OpenCounterSource()),
      nic_page_([this] { return CollectNics(); }),
      attaches_(root),
      pod_resources_(root),
      hints_([this] { return pod_resources_.List(kAdmissionWaits); }),
      registrar_(
          {root, root.Path(line.kubelet_directory), line.registry ? root.Path(line.registry_directory) : "",
           SocketTag(), [this](const resources::ResourcePool& pool) { return hints_.For(pool); },
           [this](std::chrono::seconds limit) { RegistrarStep(limit); }},
          offer, [log](const kubelet::Event& event) { LogEvent(log, event); }),
      announcer_(root, kernel,
                 [this](const AttachmentKey& key, const Result<attachment::Repeated>& repeated) {
                   activity_.Announced(repeated);
                   LogRepeated(log_, key, repeated);
                 }),
      binder_(root, [this] { return pod_resources_.List(kAddWaits); }),
      features_(root, line.nfd_features, line.resync_interval, log),
      isolation_(root, log),
      budget_(root, rails_, log),
      pages_(std::move(outlets.pages)) {
  activity_.Offered(offer);
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
  reconciling_ =
      std::make_unique<PassLoop>(reconcile_interval, PassLoop::Pass{pass, [this] { reconciler_.Stop(); }});
  const auto look = [this] {
    const reconcile::DriftReport report = drift_.Look();
    activity_.Watched(report);
    LogDrift(log_, report);
  };
  watching_ =
      std::make_unique<PassLoop>(2 * reconcile_interval, PassLoop::Pass{look, [this] { drift_.Stop(); }});
}

void Daemon::RegistrarStep(std::chrono::seconds limit) {
  activity_.heartbeats.registrar.Within(limit);
  // Probes are about the process that serves.
  pages_->Want(!StandsBy(registrar_.Activities()));
}

Result<Bindings> Daemon::Bind(const BindRequest& request) {
  ++binding_;
  activity_.heartbeats.binder.Within(kLongestBinding);
  const auto begin = std::chrono::steady_clock::now();
  auto answer = binder_.Bind(request);
  activity_.Bound(answer, std::chrono::steady_clock::now() - begin);
  // Those that are left were begun within the time that the latest one was given.
  if (--binding_ == 0) activity_.heartbeats.binder.Rest();
  return answer;
}

nic_metrics::NicPageSources Daemon::CollectNics() {
  const auto begin = std::chrono::steady_clock::now();
  nic_metrics::NicPageSources sources;
  sources.report = nics_.Collect(activity_.offer());
  sources.health = advertiser_->Health();
  sources.drifted = activity_.drifted_attachments();
  sources.took = std::chrono::steady_clock::now() - begin;
  for (const Error& problem : sources.report.problems)
    log_->Debug("not counted", {{"error", Describe(problem)}});
  return sources;
}

http::HttpResponse Daemon::AnswerHttp(const http::HttpRequest& request) {
  if (request.path == "/healthz") return HealthzAnswer(activity_.heartbeats);
  if (request.path == "/readyz") return ReadyzAnswer(ReadinessOf(activity_, registrar_.Activities()));
  http::HttpResponse response;
  const ExpositionFormat format = FormatAccepted(request.accept);
  if (request.path == "/metrics") {
    response.content_type = ContentTypeOf(format);
    response.body =
        MetricsPage({root_, &activity_, registrar_.Activities(), advertiser_->Health(), leasing_.get(),
                     &attaches_, leaves_->Report(), reach_->Report(), &isolation_, &budget_},
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

int Daemon::Run(const sigset_t& signals) {
  Result<void> ran;
  std::thread serving([&] {
    // What is not home yet should not be given out; but kubelet does not wait for ever.
    if (reconciling_ && !reconciling_->AwaitFirst(kFirstPass))
      log_->Debug("serving before the first pass is over");
    activity_.serving = true;
    if (!stopping_) ran = registrar_.Run();
    if (!ran) ::kill(::getpid(), SIGTERM);
  });
  int signal = AwaitSignal(signals);
  for (; signal == SIGHUP; signal = AwaitSignal(signals)) {
    log_->Info("looking again", {{"signal", "HUP"}});
    service_.Reloading();
    activity_.node.requests.Add();
    advertiser_->Look();
  }
  service_.Stopping();
  Stop();
  serving.join();
  if (!ran) {
    log_->Failure("stopped", ran.error());
    return kFailed;
  }
  log_->Info("stopped", {{"signal", ::sigabbrev_np(signal)}});
  return kStopped;
}

int Daemon::AwaitSignal(const sigset_t& signals) {
  while (true) {
    service_.Tick();
    const auto interval = service_.interval();
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

bool Daemon::Ended() {
  return (!reconciling_ || reconciling_->AwaitEnd(kLastStep)) &&
         (!watching_ || watching_->AwaitEnd(kLastStep)) && (!leasing_ || leasing_->AwaitEnd(kLastStep)) &&
         (!leaves_ || leaves_->AwaitEnd(kLastStep)) && (!reach_ || reach_->AwaitEnd(kLastStep)) &&
         isolation_.AwaitEnd(kLastStep) && budget_.AwaitEnd(kLastStep) && pages_->AwaitEnd(kLastStep);
}

void Daemon::Stop() {
  stopping_ = true;
  advertiser_->Stop();
  bind_server_->Stop();
  announcer_.Stop();
  if (reconciling_) reconciling_->Stop();
  if (watching_) watching_->Stop();
  if (leasing_) leasing_->Stop();
  if (leaves_) leaves_->Stop();
  if (reach_) reach_->Stop();
  isolation_.Stop();
  budget_.Stop();
  pages_->Stop();
  registrar_.Stop();
}

}  // namespace railhead::daemon
