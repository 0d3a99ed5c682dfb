#include "deviceplugin/daemon/daemon.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace railhead {
namespace {

// In containers every process is number 1, so the time is part of the name.
std::string SocketTag() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::array<char, 32> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%d-%llx", ::getpid(),
                      static_cast<unsigned long long>(now / std::chrono::milliseconds(1)));
  return buffer.data();
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::Start(const Root& root, Kernel& kernel, const CommandLine& line,
                                              const NodePlan& node, Log* log) {
  // Below another root there are no drivers to ask.
  auto health = std::make_unique<HealthWatch>(root, node.health,
                                              root.prefix().empty() ? MakeKernelDriverSource() : nullptr);
  const BoundSlots bound = ReadBoundSlots(root).value_or(BoundSlots{});
  // As last known: kubelet must not see a device become healthy and then not.
  std::unique_ptr<Daemon> daemon(
      new Daemon(root, kernel, line, OfferOf(node.plan, health.get(), bound), log));
  Advertiser::Calls calls;
  calls.give = [&registrar = daemon->registrar_](Offer offer) { registrar.Update(std::move(offer)); };
  calls.view = [&hints = daemon->hints_, &binder = daemon->binder_](BindingView view) {
    hints.Update(view.topology, view.accelerators);
    binder.Update(std::move(view));
  };
  calls.plan_changed = [log](const PlanChange& change) { LogPlanChange(log, change); };
  calls.health_changed = [log](const HealthTick& tick) { LogHealth(log, tick); };
  daemon->advertiser_ = RH_TRY(Advertiser::Start({root, line.source, line.resync_interval}, kernel, node.plan,
                                                 std::move(health), std::move(calls)));
  daemon->bind_server_ = RH_TRY(BindServer::Start(
      root, [&binder = daemon->binder_](const BindRequest& request) { return binder.Bind(request); },
      [log](const BindRequest& request, const Result<Bindings>& answer) {
        LogBinding(log, request, answer);
      }));
  return daemon;
}

Daemon::Daemon(const Root& root, Kernel& kernel, const CommandLine& line, const Offer& offer, Log* log)
    : log_(log),
      report_log_(log),
      reconciler_(root, kernel),
      pod_resources_(root),
      hints_([this] { return pod_resources_.List(kAdmissionWaits); }),
      registrar_({root, root.Path(line.kubelet_directory), SocketTag(),
                  [this](const ResourcePool& pool) { return hints_.For(pool); }},
                 offer, [log](const Event& event) { LogEvent(log, event); }),
      announcer_(root, kernel,
                 [log](const AttachmentKey& key, const Result<Repeated>& repeated) {
                   LogRepeated(log, key, repeated);
                 }),
      binder_(root, [this] { return pod_resources_.List(kAddWaits); }) {
  if (line.reconcile_interval.count() > 0) {
    reconciling_ =
        std::make_unique<ReconcileLoop>(reconciler_, line.reconcile_interval,
                                        [this](const ReconcileReport& report) { report_log_.Write(report); });
  }
}

int Daemon::Run(const sigset_t& signals) {
  Result<void> ran;
  std::thread serving([&] {
    // What is not home yet should not be given out; but kubelet does not wait for ever.
    if (reconciling_ && !reconciling_->AwaitFirst(kFirstPass))
      log_->Debug("serving before the first pass is over");
    if (!stopping_) ran = registrar_.Run();
    if (!ran) ::kill(::getpid(), SIGTERM);
  });
  int signal = 0;
  for (sigwait(&signals, &signal); signal == SIGHUP; sigwait(&signals, &signal)) {
    log_->Info("looking again", {{"signal", "HUP"}});
    advertiser_->Look();
  }
  Stop();
  serving.join();
  if (!ran) {
    log_->Failure("stopped", ran.error());
    return kFailed;
  }
  log_->Info("stopped", {{"signal", ::sigabbrev_np(signal)}});
  return kStopped;
}

bool Daemon::Ended() {
  return !reconciling_ || reconciling_->AwaitEnd(kLastStep);
}

void Daemon::Stop() {
  stopping_ = true;
  advertiser_->Stop();
  bind_server_->Stop();
  announcer_.Stop();
  if (reconciling_) reconciling_->Stop();
  registrar_.Stop();
}

}  // namespace railhead
