#include "deviceplugin/services/kubelet/registrar.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <utility>

#include "deviceplugin/services/kubelet/endpoints.h"
#include "deviceplugin/services/kubelet/kubelet_client.h"
#include "deviceplugin/services/kubelet/registrar_event.h"
#include "deviceplugin/services/kubelet/registration_machine.h"
#include "deviceplugin/services/kubelet/resource_metrics.h"
#include "deviceplugin/services/kubelet/socket_identity.h"
#include "deviceplugin/services/kubelet/socket_name.h"
#include "deviceplugin/services/kubelet/socket_watch.h"
#include "netns/base/files.h"

namespace railhead::kubelet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// kubelet answers after it has dialed back, which takes 10 s at most.
constexpr milliseconds kRegisterLimit{15'000};
// How often to check whether other processes still serve: a killed one causes no event.
constexpr milliseconds kStandbyPause{500};
// Devices that are not restored yet should not be advertised, for example.
constexpr std::chrono::seconds kLongestPrecondition{30};
// One step: registering, or ending a server with its streams.
constexpr std::chrono::seconds kLongestStep{120};

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

class Registrar::Loop {
 public:
  Loop(Options options, const Published<std::optional<Advertisement>>& advertisement, Log* log)
      : options_(std::move(options)),
        kubelet_socket_(options_.kubelet_directory + "/kubelet.sock"),
        advertisement_(advertisement),
        log_(log),
        client_(kubelet_socket_),
        allocator_(std::make_shared<resources::Allocator>(options_.root)) {}

  Result<void> Run(Worker& worker) {
    worker_ = &worker;
    const std::stop_callback cancel(worker.stop(), [this] { client_.Cancel(); });
    RH_TRY(socket_watch_.Check());
    AwaitAdvertisement();
    if (!worker.StopRequested()) AwaitPreconditions();
    RH_TRY(CheckSocketPaths());
    serving_ = true;
    kubelet_ = IdentityOf(kubelet_socket_);
    while (!worker.StopRequested()) Step();
    for (Endpoint& endpoint : endpoints_) endpoint.server.reset();
    return {};
  }

  std::vector<std::shared_ptr<const ResourceActivity>> Activities() const { return endpoints_.Activities(); }

  std::string NotServing() const {
    if (serving_) return "";
    if (!*advertisement_.Get()) return "the node has not been read yet";
    for (const Precondition& one : options_.preconditions) {
      if (!*one.met.Get()) return std::string(one.what);
    }
    return "the advertised resources are not served yet";
  }

  const Published<bool>& standby() const { return standby_; }

 private:
  using State = RegistrationState;
  using Input = RegistrationEvent;
  using Action = RegistrationAction;

  // What reports say beside the event.
  struct Facts {
    std::string detail;
    std::optional<Error> error;
  };

  [[nodiscard]] Result<void> CheckSocketPaths() const {
    for (const Endpoint& endpoint : endpoints_)
      RH_TRY(CheckSocketPath(options_.kubelet_directory, endpoint.resource(), options_.socket_tag));
    return {};
  }

  void Publish(const Endpoint& endpoint) const {
    endpoint.activity->serving = endpoint.server != nullptr;
    endpoint.activity->registered = endpoint.registration.registered();
    endpoint.activity->standby = endpoint.registration.standby();
  }

  void Emit(EventKind kind, const std::string& resource, std::string detail,
            std::optional<Error> error = std::nullopt) const {
    LogEvent(log_, {kind, resource, std::move(detail), {}, std::move(error)});
  }

  void TakeAdvertisement() {
    const auto now = advertisement_.Get();
    if (now == taken_ || !*now) return;
    taken_ = now;
    endpoints_.Take(**now);
  }

  void AwaitAdvertisement() {
    advertisement_.Subscribe(*worker_);
    for (TakeAdvertisement(); !taken_ && !worker_->StopRequested(); TakeAdvertisement())
      worker_->Wait(Clock::time_point::max());
  }

  void AwaitPreconditions() {
    const auto until = Clock::now() + kLongestPrecondition;
    for (const Precondition& one : options_.preconditions) {
      one.met.Subscribe(*worker_);
      while (!*one.met.Get() && !worker_->StopRequested() && Clock::now() < until) worker_->Wait(until);
      if (!*one.met.Get() && !worker_->StopRequested())
        log_->Debug("serving before all is ready", {{"because", std::string(one.what)}});
    }
  }

  void Step() {
    TakeAdvertisement();
    socket_watch_.Watch(options_.kubelet_directory);
    ReadKubelet();
    removed_sockets_ = socket_watch_.TakeRemovedSockets();
    std::vector<Endpoint*> due;
    for (Endpoint& endpoint : endpoints_) {
      worker_->Busy(kLongestStep, "serving " + endpoint.resource());
      Observe(&endpoint);
      if (IsIn(endpoint, State::kUnregistered) && IsDue(endpoint, Input::kAttemptTime))
        due.push_back(&endpoint);
      Publish(endpoint);
    }
    PublishStandby();
    worker_->Busy(kLongestStep, "registering with kubelet");
    Register(due);
    PublishStandby();
    Wait();
  }

  void PublishStandby() {
    const bool now = endpoints_.begin() != endpoints_.end() &&
                     std::ranges::all_of(endpoints_, [](const Endpoint& endpoint) {
                       return endpoint.activity->standby.load();
                     });
    if (now != *standby_.Get()) standby_.Set(now);
  }

  static bool IsIn(const Endpoint& endpoint, const RegistrationStates& states) {
    return states.Contains(endpoint.registration.state());
  }
  static bool IsIn(const Endpoint& endpoint, State state) { return endpoint.registration.state() == state; }
  static bool IsDue(const Endpoint& endpoint, Input time) {
    return endpoint.registration.Due(time, Clock::now());
  }

  // --- what has happened ---

  void ReadKubelet() {
    const auto kubelet = IdentityOf(kubelet_socket_);
    if (kubelet == kubelet_) return;
    kubelet_ = kubelet;
    kubelet_since_ = Clock::now();
  }

  // The order decides which of several reasons counts.
  void Observe(Endpoint* endpoint) {
    if (endpoint->registration.kubelet() != kubelet_)
      Report(endpoint, kubelet_ ? Input::kKubeletCame : Input::kKubeletWent, kubelet_);
    ObserveServer(endpoint);
    if (IsIn(*endpoint, State::kOutdated)) ReportIfDue(endpoint, Input::kAttemptTime);
    if (IsIn(*endpoint, State::kNotServed)) ReportIfDue(endpoint, Input::kAttemptTime);
    if (!endpoint->server || !kubelet_) return;
    ObserveOtherInstances(endpoint);
    ReportIfDue(endpoint, Input::kRejoinTime);
    if (IsIn(*endpoint, {State::kAwaitingStream, State::kRegistered})) ObserveStreams(endpoint);
  }

  void ObserveServer(Endpoint* endpoint) {
    if (!endpoint->server) return;
    if (!endpoint->HasOptions()) {
      Report(endpoint, Input::kOptionsChanged);
    } else if (!Exists(endpoint->server->socket_path())) {
      Report(endpoint, Input::kSocketRemoved);
    }
  }

  void ObserveOtherInstances(Endpoint* endpoint) {
    auto changes = endpoint->other_instances.Update(
        options_.kubelet_directory, BaseName(endpoint->server->socket_path()), removed_sockets_);
    if (changes.newer) {
      if (endpoint->registration.standby()) return;
      Report(endpoint, Input::kNewerCame, std::nullopt, {*std::move(changes.newer), std::nullopt});
    } else if (changes.newer_left) {
      Report(endpoint, Input::kNewerLeft);
    } else if (changes.older_left) {
      Report(endpoint, Input::kOlderLeft);
    }
  }

  void ObserveStreams(Endpoint* endpoint) {
    if (endpoint->server->StreamsSoFar() == endpoint->streams_before) {
      ReportIfDue(endpoint, Input::kStreamTime);
    } else {
      const bool open = endpoint->server->NewestStreamIsOpen();
      Report(endpoint, open ? Input::kStreamOpened : Input::kStreamEnded);
    }
  }

  void ReportIfDue(Endpoint* endpoint, Input time) {
    if (IsDue(*endpoint, time)) Report(endpoint, time);
  }

  void Report(Endpoint* endpoint, Input event, const std::optional<SocketIdentity>& kubelet = std::nullopt,
              const Facts& facts = {}) {
    const bool stream_open = endpoint->server && endpoint->server->NewestStreamIsOpen();
    const RegistrationInput input{event, Clock::now(), kubelet, kubelet_since_, stream_open};
    for (const Action action : endpoint->registration.On(input)) Do(endpoint, action, facts);
  }

  // --- what the machine wants ---

  void Do(Endpoint* endpoint, Action action, const Facts& facts) {
    const auto gone = [&](const char* why) { Emit(EventKind::kKubeletGone, endpoint->resource(), why); };
    switch (action) {
      case Action::kServe:
        return Serve(endpoint);
      case Action::kStopServer:
        return endpoint->server.reset();
      case Action::kRegister:
        endpoint->streams_before = endpoint->server->StreamsSoFar();
        return calling_.push_back(endpoint);
      case Action::kReportServing:
        endpoint->activity->set_problem("");
        return Emit(EventKind::kServing, endpoint->resource(), endpoint->server->socket_path());
      case Action::kReportServeFailed:
        return ReportFailure(endpoint, EventKind::kServeFailed, *facts.error);
      case Action::kReportRegistered:
        return ReportRegistered(endpoint);
      case Action::kReportRegisterFailed:
        ReportFailure(endpoint, EventKind::kRegisterFailed, *facts.error);
        return endpoint->activity->registration_failures.Add();
      case Action::kReportStandby:
        Publish(*endpoint);
        return Emit(EventKind::kStandby, endpoint->resource(), facts.detail);
      case Action::kReportRemoved:
        return gone("our socket has been removed");
      case Action::kReportOutdated:
        return gone("kubelet.sock is another one");
      case Action::kReportStreamEnded:
        return gone("kubelet has ended ListAndWatch");
      case Action::kReportNoStream:
        return gone("kubelet has not called ListAndWatch");
      case Action::kReportOtherLeft:
        return gone("another railheadd has left the resource");
      default:
        return;  // the machine has done it
    }
  }

  void ReportFailure(Endpoint* endpoint, EventKind kind, const Error& error) const {
    if (error.message != endpoint->last_error) Emit(kind, endpoint->resource(), "", error);
    endpoint->last_error = error.message;
    endpoint->activity->set_problem(Describe(error));
  }

  void ReportRegistered(Endpoint* endpoint) const {
    endpoint->last_error.clear();
    endpoint->activity->registrations.Add();
    endpoint->activity->set_problem("");
    Publish(*endpoint);
    Emit(EventKind::kRegistered, endpoint->resource(), kubelet_socket_);
  }

  void Serve(Endpoint* endpoint) {
    const std::string& directory = options_.kubelet_directory;
    const std::string name =
        SocketName(directory, endpoint->resource(), options_.socket_tag, endpoint->servers_so_far + 1);
    PluginServer::Wiring wiring;
    wiring.paths = options_.paths;
    wiring.root = options_.root;
    wiring.allocator = allocator_;
    wiring.activity = endpoint->activity;
    wiring.streams_changed = [worker = worker_] { worker->Wake(); };
    wiring.report = [log = log_](const CallReport& call) {
      LogEvent(log, {EventKind::kCall, call.resource, call.method, call.device_ids, call.error,
                     call.rewritten, call.cdi_unread});
    };
    auto server = PluginServer::Start(directory + "/" + name, endpoint->view, std::move(wiring));
    if (!server) return Report(endpoint, Input::kServeFailed, std::nullopt, {"", std::move(server.error())});
    endpoint->server = *std::move(server);
    ++endpoint->servers_so_far;
    Report(endpoint, Input::kServed);
  }

  void Register(const std::vector<Endpoint*>& due) {
    // Reads the identity again: kubelet may have restarted since. A stale identity would make this process
    // serve again for nothing.
    const auto kubelet = IdentityOf(kubelet_socket_);
    if (!kubelet || due.empty()) return;
    for (Endpoint* endpoint : due) Report(endpoint, Input::kAttemptTime);
    const auto calling = std::exchange(calling_, {});
    std::vector<KubeletClient::Registration> registrations;
    registrations.reserve(calling.size());
    for (Endpoint* endpoint : calling) {
      // A kubelet that starts removes our socket, and then dials it in vain until its time limit.
      const std::string& socket = endpoint->server->socket_path();
      registrations.push_back({endpoint->resource(), BaseName(socket), endpoint->server->PreStartRequired(),
                               [&socket] { return Exists(socket); }});
    }
    const auto done = client_.Register(registrations, kRegisterLimit);
    if (worker_->StopRequested()) return;
    for (std::size_t i = 0; i < calling.size(); ++i) {
      if (done[i]) {
        Report(calling[i], Input::kRegisterAnswered, kubelet);
      } else {
        Report(calling[i], Input::kRegisterFailed, std::nullopt, {"", done[i].error()});
      }
    }
  }

  // Waits until something may have changed.
  void Wait() {
    auto until = Clock::time_point::max();
    for (const Endpoint& endpoint : endpoints_) {
      until = std::min(until, endpoint.registration.NextTime());
      if (endpoint.other_instances.any()) until = std::min(until, Clock::now() + kStandbyPause);
    }
    socket_watch_.WaitUntil(*worker_, until);
  }

  const Options options_;
  const std::string kubelet_socket_;
  const Published<std::optional<Advertisement>>& advertisement_;
  Log* const log_;
  Worker* worker_ = nullptr;                                   // while it runs
  std::shared_ptr<const std::optional<Advertisement>> taken_;  // the latest
  KubeletClient client_;
  std::shared_ptr<resources::Allocator> allocator_;
  SocketWatch socket_watch_;
  std::vector<std::string> removed_sockets_;  // sockets that came and went since the last step
  std::atomic<bool> serving_ = false;
  Published<bool> standby_;
  std::optional<SocketIdentity> kubelet_;  // as of the last step
  Clock::time_point kubelet_since_;        // the epoch: before this process
  std::vector<Endpoint*> calling_;         // for the next call of Register
  Endpoints endpoints_;
};

Registrar::Registrar(Options options, const Published<std::optional<Advertisement>>& advertisement, Log* log)
    : loop_(std::make_unique<Loop>(std::move(options), advertisement, log)) {}
Registrar::~Registrar() = default;

void Registrar::Register(MetricRegistry& metrics) {
  RegisterResources(metrics, *this);
}
Result<void> Registrar::Run(Worker& worker) {
  return loop_->Run(worker);
}
std::vector<std::shared_ptr<const ResourceActivity>> Registrar::Activities() const {
  return loop_->Activities();
}
std::string Registrar::NotServing() const {
  return loop_->NotServing();
}
const Published<bool>& Registrar::standby() const {
  return loop_->standby();
}

}  // namespace railhead::kubelet
