#include "deviceplugin/daemon/daemon.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "deviceplugin/daemon/readiness.h"
#include "deviceplugin/services/kubelet/resource_metrics.h"
#include "deviceplugin/services/late_binding/bind_service.h"
#include "deviceplugin/services/late_binding/hints_service.h"
#include "deviceplugin/services/lldp/lldp_service.h"
#include "deviceplugin/services/nic_metrics/counter_source.h"
#include "deviceplugin/services/node_index/index_service.h"
#include "deviceplugin/services/node_status/node_status_service.h"
#include "deviceplugin/services/reachability/echo_server.h"
#include "deviceplugin/services/reachability/reachability_service.h"
#include "deviceplugin/services/reconcile/reconcile_service.h"
#include "deviceplugin/support/metrics/process_metrics.h"
#include "netns/base/exit_status.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::daemon {
namespace {

using Start = Supervisor::Start;

constexpr const char* kAloneLock = "/run/railhead/locks/railheadd.lock";
// The NICs' counters: a driver may take long to read them.
constexpr const char* kNicsPath = "/metrics/nics";
constexpr const char* kNoSuchPage = "there are /metrics, /healthz and /readyz\n";
// Between two looks for stuck services, and for the end of another railheadd.
constexpr std::chrono::seconds kCalm{30};
constexpr std::chrono::seconds kWhileStarting{1};

// In containers every process is number 1, so the time is part of the name.
std::string SocketTag() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::array<char, 32> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%d-%llx", ::getpid(),
                      static_cast<unsigned long long>(now / std::chrono::milliseconds(1)));
  return buffer.data();
}

}  // namespace

Daemon::Daemon(const Root& root, Kernel& kernel, const CommandLine& line, const Interfaces& interfaces,
               Log* log)
    : root_(root),
      log_(log),
      pod_resources_(root),
      hints_([this] { return pod_resources_.List(kAdmissionWaits); }),
      // Below another root no NIC has counters.
      nics_(root, kernel,
            root.prefix().empty() ? nic_metrics::OpenKernelCounters : nic_metrics::OpenCounterSource()),
      nic_page_([this] { return CollectNics(); }),
      supervisor_(root, kAloneLock, [] { (void)::kill(::getpid(), SIGTERM); }),
      follower_(AddFollower(line)),
      watcher_(AddWatcher(kernel, line)),
      registrar_(AddRegistrar(line)),
      drift_(AddReconciler(kernel, line)),
      systemd_(interfaces.systemd, watcher_, registrar_, supervisor_) {
  AddFabricServices(kernel, line, interfaces.kubernetes);
  AddPages(line);
  metrics_.Add(MetricType::kGauge, "railhead_build_info", "Always 1; the version of railheadd",
               [](Exposition& page) {
                 page.Sample({{"version", RAILHEAD_VERSION}}, std::uint64_t{1});
               });
  kubelet::RegisterDevices(metrics_, root_, watcher_.advertisement());
  supervisor_.Register(metrics_);
  metrics_.AddGroup([](Exposition& page) { AppendProcessMetrics(&page); });
}

// Passes once before the fabric is read for the first time: it may have changed while no railheadd ran.
fabric_follow::Follower& Daemon::AddFollower(const CommandLine& line) {
  auto follower = std::make_unique<fabric_follow::Follower>(root_, line.follow_config, log_);
  if (line.follow_config.empty()) {
    // Of an earlier railheadd with another command line.
    (void)RemoveFile(fabric_follow::kFollowFile.PathIn(root_));
  } else {
    follower->Step();
  }
  return supervisor_.Add(std::move(follower), Start::kAlone);
}

discovery::NodeWatcher& Daemon::AddWatcher(Kernel& kernel, const CommandLine& line) {
  discovery::NodeWatcher::Options options{root_, line.source, line.resync_interval};
  if (!line.follow_config.empty()) options.fabric_refused = &follower_.refused();
  return supervisor_.Add(std::make_unique<discovery::NodeWatcher>(std::move(options), kernel, probes_, log_),
                         Start::kAtOnce);
}

kubelet::Registrar& Daemon::AddRegistrar(const CommandLine& line) {
  const auto& view = watcher_.binding_view();
  const auto& hints =
      supervisor_.Add(std::make_unique<late_binding::HintsService>(hints_, view), Start::kAtOnce);
  supervisor_.Add(std::make_unique<late_binding::BindService>(
                      root_, view, [this] { return pod_resources_.List(kAddWaits); }, log_),
                  Start::kAtOnce);
  kubelet::Registrar::Options options;
  options.root = root_;
  options.kubelet_directory = root_.Path(line.kubelet_directory);
  options.socket_tag = SocketTag();
  options.paths = [this](const resources::ResourcePool& pool) { return hints_.For(pool); };
  options.preconditions.push_back({hints.ready(), "the accelerators are not known yet"});
  if (line.reconcile_interval.count() > 0)
    options.preconditions.push_back({restored_, "the first reconcile pass is not done"});
  return supervisor_.Add(
      std::make_unique<kubelet::Registrar>(std::move(options), watcher_.advertisement(), log_),
      Start::kAtOnce);
}

reconcile::DriftService& Daemon::AddReconciler(Kernel& kernel, const CommandLine& line) {
  const auto interval = line.reconcile_interval;
  supervisor_.Add(std::make_unique<reconcile::ReconcileService>(root_, kernel, interval, &restored_, log_),
                  Start::kAlone);
  return supervisor_.Add(std::make_unique<reconcile::DriftService>(root_, kernel, 2 * interval, log_),
                         Start::kAlone);
}

void Daemon::AddFabricServices(Kernel& kernel, const CommandLine& line, const KubeService& kubernetes) {
  const auto& node = watcher_.node();
  supervisor_.Add(std::make_unique<lldp::LldpService>(
                      root_, kernel, node,
                      lldp::NodeFeatures(root_, line.nfd_features, line.resync_interval, log_), log_),
                  Start::kAlone);
  auto& echo = supervisor_.Add(std::make_unique<reachability::EchoServer>(), Start::kAlone);
  const auto& reach =
      supervisor_.Add(std::make_unique<reachability::ReachabilityService>(
                          root_, kernel, echo, root_.Path(line.probe_keys), node, claimed_, log_),
                      Start::kAlone);
  supervisor_.Add(std::make_unique<node_index::IndexService>(root_, node, kubernetes, &claimed_, log_),
                  Start::kAlone);
  const node_status::NodeStatusService::Sources sources{node, watcher_.health(), reach.faults(),
                                                        follower_.refused()};
  supervisor_.Add(std::make_unique<node_status::NodeStatusService>(root_, sources, kubernetes, log_),
                  Start::kAlone);
}

// Of two railheadds (an update) one has the shared address. Each has the address of its own.
void Daemon::AddPages(const CommandLine& line) {
  // Probes there are about the process that serves.
  if (line.http_address) {
    AddPage({.name = "http",
             .address = *line.http_address,
             .is_slow = [](const http::HttpRequest& request) { return request.path == kNicsPath; },
             .from = &watcher_.answerable(),
             .left = &registrar_.standby()});
  }
  if (line.http_socket.empty()) return;
  const auto own = http::ParseHttpAddress("unix:" + line.http_socket);
  // The path may be too long for a socket: then railheadd goes on without.
  if (!own) return log_->Warning("serving probes failed", own.error());
  AddPage({.name = "http_own",
           .address = *own,
           .is_slow = [](const http::HttpRequest& request) { return request.path == kNicsPath; },
           .from = &watcher_.answerable()});
}

void Daemon::AddPage(http::HttpServer::Options options) {
  const auto report = [log = log_](const Result<std::string>& bound) {
    if (bound) {
      log->Info("serving metrics and probes", {{"address", *bound}});
    } else {
      log->Warning("serving metrics and probes failed", bound.error());
    }
  };
  supervisor_.Add(
      std::make_unique<http::HttpServer>(
          std::move(options), [this](const http::HttpRequest& request) { return Answer(request); }, report),
      Start::kAtOnce);
}

nic_metrics::NicPageSources Daemon::CollectNics() {
  const auto begin = std::chrono::steady_clock::now();
  nic_metrics::NicPageSources sources;
  sources.report = nics_.Collect(watcher_.advertisement().Get()->value_or(Advertisement{}));
  sources.health = watcher_.health().Get()->devices;
  sources.drifted = *drift_.drifted().Get();
  sources.took = std::chrono::steady_clock::now() - begin;
  for (const Error& problem : sources.report.problems)
    log_->Debug("reading a NIC's counters failed", {{"error", Describe(problem)}});
  return sources;
}

http::HttpResponse Daemon::Answer(const http::HttpRequest& request) {
  const auto start = watcher_.start().Get();
  if (request.path == "/healthz") return HealthzAnswer(supervisor_.FindStuck());
  if (request.path == "/readyz") {
    return ReadyzAnswer(ReadinessOf(start->empty() ? registrar_.NotServing() : *start,
                                    watcher_.uevents_connected(), registrar_.Activities()));
  }
  http::HttpResponse response;
  const ExpositionFormat format = FormatAccepted(request.accept);
  if (request.path == "/metrics" && watcher_.node().Get()->inventory == nullptr) {
    response.status = 503;
    response.body = "metrics are available after the start\n";
  } else if (request.path == "/metrics") {
    response.content_type = ContentTypeOf(format);
    response.body = metrics_.Page(format);
  } else if (request.path == kNicsPath) {
    response.content_type = ContentTypeOf(format);
    response.body = nic_page_.Get(format);
  } else {
    response.status = 404;
    response.body = kNoSuchPage;
  }
  return response;
}

int Daemon::Run(const sigset_t& signals) {
  auto started = supervisor_.StartAll();
  if (started) started = StartOthers();
  if (!started) {
    log_->Failure("cannot start", started.error());
    return kExitFailed;
  }
  int signal = AwaitSignal(signals);
  for (; signal == SIGHUP; signal = AwaitSignal(signals)) {
    log_->Info("discovery requested", {{"signal", "HUP"}});
    systemd_.Reloading();
    watcher_.Discover();
  }
  systemd_.Stopping();
  supervisor_.RequestStop();
  if (const auto failure = supervisor_.Failure()) return StatusOf(*failure);
  log_->Info("stopped", {{"signal", ::sigabbrev_np(signal)}});
  return kExitDone;
}

int Daemon::StatusOf(const Error& failure) {
  const bool read = watcher_.node().Get()->inventory != nullptr;
  log_->Failure(registrar_.NotServing().empty() ? "stopped" : "cannot start", failure);
  return read ? kExitFailed : kExitBadConfig;
}

Result<void> Daemon::StartOthers() {
  if (others_run_) return {};
  others_run_ = RH_TRY(supervisor_.StartOthers());
  // The other one restores.
  if (!others_run_ && !*restored_.Get()) {
    log_->Info("another railheadd runs on this node; what needs the node alone starts when it has ended");
    restored_.Set(true);
  }
  return {};
}

void Daemon::Tick() {
  systemd_.Tick();
  if (const auto started = StartOthers(); start_failure_.IsNew(started))
    log_->Failure("starting services failed; trying again", started.error());
  LogStuck();
}

void Daemon::LogStuck() {
  auto stuck = supervisor_.FindStuck();
  if (stuck == known_stuck_) return;
  for (const Supervisor::Stuck& one : stuck) {
    if (Contains(known_stuck_, one)) continue;
    log_->Warning("a part of railheadd makes no progress",
                  {{"what", std::string(one.service)}, {"because", "it is busy at " + one.at}});
  }
  if (stuck.empty()) log_->Info("all parts of railheadd make progress again");
  known_stuck_ = std::move(stuck);
}

int Daemon::AwaitSignal(const sigset_t& signals) {
  while (true) {
    Tick();
    std::chrono::nanoseconds limit = others_run_ ? kCalm : kWhileStarting;
    if (const auto interval = systemd_.interval())
      limit = std::min<std::chrono::nanoseconds>(limit, *interval);
    const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
    const timespec until{seconds.count(), (limit - seconds).count()};
    const int signal = ::sigtimedwait(&signals, nullptr, &until);
    if (signal > 0) return signal;
  }
}

std::vector<std::string_view> Daemon::StillRunning() {
  return supervisor_.AwaitEnd(Worker::Clock::now() + kLastAnswers);
}

}  // namespace railhead::daemon
