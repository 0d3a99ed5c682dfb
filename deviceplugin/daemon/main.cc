// railheadd: the node daemon. See --help and docs.
//
// Exit status: 0 stopped by SIGTERM or SIGINT; 1 a failure while running; 2 wrong
// command line; 3 the configuration is missing or wrong.
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "cni/state/attach_log.h"
#include "deviceplugin/daemon/command_line.h"
#include "deviceplugin/daemon/events_log.h"
#include "deviceplugin/daemon/log.h"
#include "deviceplugin/kubelet/registrar.h"
#include "deviceplugin/pools/plan.h"
#include "deviceplugin/reconcile/announcer.h"
#include "deviceplugin/reconcile/loop.h"
#include "deviceplugin/reconcile/reconciler.h"
#include "deviceplugin/reconcile/timings.h"
#include "netns/linux_kernel.h"

namespace railhead {
namespace {

Result<HostNetwork> AskHostNetwork(Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  return ReadHostNetwork(*route);
}

// Device nodes are named in Allocate, before the move that can change their numbers.
Result<void> RefuseNodesInExclusiveMode(Kernel& kernel, const Plan& plan) {
  for (const auto& pool : plan.pools) {
    if (pool->spec.rdma_nodes == RdmaNodes::kNone) continue;
    const NetNs host = RH_TRY(kernel.HostNetns());
    const auto rdma = kernel.OpenRdma(host);
    if (!rdma) return {};  // no RDMA, no mode
    if (RH_TRY((*rdma)->NetnsMode()) == RdmaNetnsMode::kShared) return {};
    return Fail(ErrorCode::kInvalid,
                plan.config_path + ": " + pool->spec.resource +
                    " gives out plain RDMA device nodes, but the " + "node's RDMA mode is exclusive",
                "use a pool of fabric.json with \"delivery\": \"cdi\", or: rdma system set netns shared");
  }
  return {};
}

// The signals that end the daemon, blocked in every thread and waited for in one.
sigset_t BlockEndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  (void)::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// In containers every process is number 1, so the time is part of the name.
std::string SocketTag() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::array<char, 32> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%d-%llx", ::getpid(),
                      static_cast<unsigned long long>(now / std::chrono::milliseconds(1)));
  return buffer.data();
}

// The threads of a daemon that serves.
class Daemon {
 public:
  Daemon(const Root& root, Kernel& kernel, const CommandLine& line, const Plan& plan, Log* log)
      : log_(log),
        report_log_(log),
        reconciler_(root, kernel),
        registrar_({root, root.Path(line.kubelet_directory), SocketTag()}, plan.pools,
                   [log](const Event& event) { LogEvent(log, event); }),
        announcer_(root, kernel, [log](const AttachmentKey& key, const Result<Repeated>& repeated) {
          LogRepeated(log, key, repeated);
        }) {
    if (line.reconcile_interval.count() > 0) {
      reconciling_ = std::make_unique<ReconcileLoop>(
          reconciler_, line.reconcile_interval,
          [this](const ReconcileReport& report) { report_log_.Write(report); });
    }
  }

  // Until one of the signals comes, or kubelet cannot be served.
  int Run(const sigset_t& signals) {
    Result<void> ran;
    std::thread serving([&] {
      // What is not home yet should not be given out; but kubelet does not wait for ever.
      if (reconciling_ && !reconciling_->AwaitFirst(kFirstPass))
        log_->Debug("serving before the first pass is over");
      if (!stopping_) ran = registrar_.Run();
      if (!ran) ::kill(::getpid(), SIGTERM);
    });
    int signal = 0;
    sigwait(&signals, &signal);
    Stop();
    serving.join();
    if (!ran) {
      log_->Failure("stopped", ran.error());
      return kFailed;
    }
    log_->Info("stopped", {{"signal", ::sigabbrev_np(signal)}});
    return kStopped;
  }

  // Whether all threads have ended or will at once. Otherwise the process has to end
  // without waiting for them: what the reconciler does can be interrupted anywhere.
  bool Ended() { return !reconciling_ || reconciling_->AwaitEnd(kLastStep); }

 private:
  static constexpr std::chrono::seconds kFirstPass{30};
  static constexpr std::chrono::seconds kLastStep{1};

  void Stop() {
    stopping_ = true;
    announcer_.Stop();
    if (reconciling_) reconciling_->Stop();
    registrar_.Stop();
  }

  Log* log_;
  ReportLog report_log_;
  Reconciler reconciler_;
  Registrar registrar_;
  std::atomic<bool> stopping_{false};
  Announcer announcer_;
  std::unique_ptr<ReconcileLoop> reconciling_;
};

int Serve(const Root& root, Kernel& kernel, const CommandLine& line, const Plan& plan, Log* log) {
  const sigset_t signals = BlockEndingSignals();
  for (const std::string& name : RemoveStaleSockets(root.Path(line.kubelet_directory))) {
    log->Info("removed a socket that nobody listened on", {{"socket", name}});
  }
  auto daemon = std::make_unique<Daemon>(root, kernel, line, plan, log);
  const int status = daemon->Run(signals);
  if (!daemon->Ended()) std::_Exit(status);
  return status;
}

int ReconcileOnce(const Root& root, Kernel& kernel) {
  Reconciler reconciler(root, kernel, SinglePass());
  const ReconcileReport report = reconciler.Run();
  (void)std::printf("%s\n", ReportAsJson(report).c_str());
  return report.Failed() ? kFailed : kStopped;
}

int ShowTimings(const Root& root, Log* log) {
  const auto timings = ReadAttachTimings(root);
  if (!timings) {
    log->Failure("cannot read the attach log", timings.error());
    return kFailed;
  }
  (void)std::printf("%s\n", TimingsAsJson(*timings).c_str());
  return kStopped;
}

int Main(int argc, char** argv) {
  // glibc would give every gRPC thread a heap of its own.
  (void)::mallopt(M_ARENA_MAX, 2);
  CommandLine line;
  if (const auto status = ParseCommandLine(argc, argv, &line)) return *status;
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const Root root(prefix != nullptr ? prefix : "");
  Log log(line.log_level);
  LinuxKernel kernel(root);
  if (line.reconcile_once) return ReconcileOnce(root, kernel);
  if (line.timings) return ShowTimings(root, &log);
  const auto host = AskHostNetwork(kernel);
  if (!host) {
    // Without this a NIC that the node lives on could be given to a pod.
    log.Failure("cannot tell which NICs the host itself needs", host.error());
    return kFailed;
  }
  const auto plan = MakePlan(root, line.source, *host);
  if (!plan) {
    log.Failure("cannot start", plan.error());
    return kBadConfig;
  }
  if (const auto possible = RefuseNodesInExclusiveMode(kernel, *plan); !possible) {
    log.Failure("cannot start", possible.error());
    return kBadConfig;
  }
  if (line.list) {
    (void)std::printf("%s\n", PlanAsJson(*plan).c_str());
    return kStopped;
  }
  LogPlan(&log, *plan);
  return Serve(root, kernel, line, *plan, &log);
}

}  // namespace
}  // namespace railhead

int main(int argc, char** argv) {
  return railhead::Main(argc, argv);
}
