#include "deviceplugin/services/kubelet/registrar.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "deviceplugin/services/kubelet/endpoints.h"
#include "deviceplugin/services/kubelet/kubelet_client.h"
#include "deviceplugin/services/kubelet/socket_identity.h"
#include "deviceplugin/services/kubelet/socket_name.h"
#include "deviceplugin/services/kubelet/socket_watch.h"
#include "netns/base/files.h"

namespace railhead::kubelet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{10'000};
// kubelet answers after it has dialed back, which takes 10 s at most.
constexpr milliseconds kRegisterLimit{15'000};
// kubelet opens ListAndWatch right after it has answered.
constexpr milliseconds kStreamLimit{10'000};
// How often to check whether other processes still serve: a killed one causes no event.
constexpr milliseconds kStandbyPause{500};
// A stream that was open for so long worked: when it ends, pauses start from the shortest again.
constexpr milliseconds kSteady{1'000};
// When an older server ends, kubelet drops this one within this time if it confuses the two.
constexpr milliseconds kLeavePause{500};
// An older server's streams end at most this long before its socket goes.
constexpr milliseconds kLeaving{5'000};
// Within this time the old kubelet finishes what it began, for example the report that it has registered us.
constexpr std::chrono::seconds kKubeletSettles{60};
// One step: registering, or ending a server with its streams.
constexpr std::chrono::seconds kLongestStep{120};

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

class Registrar::Loop {
 public:
  Loop(Options options, const Advertisement& advertisement, Sink sink)
      : options_(std::move(options)),
        kubelet_socket_(options_.kubelet_directory + "/kubelet.sock"),
        sink_(std::move(sink)),
        client_(kubelet_socket_),
        allocator_(std::make_shared<resources::Allocator>(options_.root)),
        endpoints_(advertisement) {}

  Result<void> Run() {
    RH_TRY(socket_watch_.Check());
    RH_TRY(CheckSocketPaths());
    kubelet_ = IdentityOf(kubelet_socket_);
    while (!stopping_) {
      endpoints_.TakeUpdate();
      socket_watch_.Watch(options_.kubelet_directory);
      const auto kubelet = IdentityOf(kubelet_socket_);
      HandleKubelet(kubelet);
      removed_sockets_ = socket_watch_.TakeRemovedSockets();
      std::vector<Endpoint*> due;
      for (Endpoint& endpoint : endpoints_) {
        if (options_.alive) options_.alive(kLongestStep);
        if (MustRegister(&endpoint, kubelet)) due.push_back(&endpoint);
        Publish(endpoint);
      }
      if (options_.alive) options_.alive(kLongestStep);
      Register(due);
      if (options_.alive) options_.alive(kLongestStep);
      Wait();
    }
    for (Endpoint& endpoint : endpoints_) endpoint.server.reset();
    return {};
  }

  void Stop() {
    stopping_ = true;
    client_.Cancel();
    socket_watch_.Wake();
  }

  void Update(Advertisement advertisement) {
    endpoints_.Update(std::move(advertisement));
    socket_watch_.Wake();
  }

  std::vector<std::shared_ptr<const ResourceActivity>> Activities() const { return endpoints_.Activities(); }

 private:
  [[nodiscard]] Result<void> CheckSocketPaths() const {
    for (const Endpoint& endpoint : endpoints_)
      RH_TRY(CheckSocketPath(options_.kubelet_directory, endpoint.resource(), options_.socket_tag));
    return {};
  }

  void Publish(const Endpoint& endpoint) const {
    endpoint.activity->serving = endpoint.server != nullptr;
    endpoint.activity->registered = kubelet_ && endpoint.registered_with == kubelet_;
    endpoint.activity->standby = endpoint.standby;
  }

  void Emit(EventKind kind, const std::string& resource, std::string detail,
            std::optional<Error> error = std::nullopt) const {
    sink_({kind, resource, std::move(detail), {}, std::move(error)});
  }

  void HandleKubelet(const std::optional<SocketIdentity>& kubelet) {
    if (kubelet == kubelet_) return;
    kubelet_ = kubelet;
    kubelet_changed_at_ = Clock::now();
    // The old kubelet's failures do not count for a new one.
    for (Endpoint& endpoint : endpoints_) {
      endpoint.pause = kFirstPause;
      endpoint.next_attempt = Clock::now();
      endpoint.standby = false;
      endpoint.lost_at = {};  // the old kubelet's end explains it, not another railheadd's
    }
  }

  // On standby while a newer process serves the resource. Registers again when one of the others has ended:
  // kubelet may have taken that end for ours.
  void HandleOtherInstances(Endpoint* endpoint) const {
    const auto now = Clock::now();
    const auto changes = endpoint->other_instances.Update(
        options_.kubelet_directory, BaseName(endpoint->server->socket_path()), removed_sockets_);
    const bool before = std::exchange(endpoint->standby, changes.newer.has_value());
    Publish(*endpoint);
    if (changes.newer && !before) Emit(EventKind::kStandby, endpoint->resource(), *changes.newer);
    if (changes.newer_left && !endpoint->standby) endpoint->reregister_at = now;
    if (changes.older_left && now > endpoint->lost_at + kLeaving && !endpoint->reregister_at)
      endpoint->reregister_at = now + kLeavePause;
    if (endpoint->standby) endpoint->reregister_at.reset();
    if (!endpoint->reregister_at || now < *endpoint->reregister_at) return;
    endpoint->reregister_at.reset();
    endpoint->next_attempt = now;
    if (!endpoint->registered_with) return;
    endpoint->registered_with.reset();
    Emit(EventKind::kKubeletGone, endpoint->resource(), "another railheadd has left the resource");
  }

  // Also starts or replaces its server, if necessary.
  bool MustRegister(Endpoint* endpoint, const std::optional<SocketIdentity>& kubelet) {
    const auto now = Clock::now();
    if (endpoint->server && MustServeAnew(endpoint, kubelet)) {
      // kubelet must process a stream that this side ends, as it must one that it ends itself.
      if (endpoint->server->NewestStreamIsOpen()) endpoint->next_attempt = now + kFirstPause;
      endpoint->server.reset();
    }
    if (!endpoint->server) {
      endpoint->registered_with.reset();
      endpoint->other_options = false;
      if (now < endpoint->next_attempt || !Serve(endpoint)) return false;
    }
    if (!kubelet) return false;
    HandleOtherInstances(endpoint);
    if (endpoint->registered_with) HandleLostStream(endpoint, now);
    if (endpoint->registered_with || Clock::now() < endpoint->next_attempt) return false;
    return !LeavesToNewer(*endpoint);
  }

  // Whether a newer railheadd gets the resource. Not with a new kubelet: the newer railheadd may never
  // register with it.
  [[nodiscard]] bool LeavesToNewer(const Endpoint& endpoint) const {
    return endpoint.standby && endpoint.last_kubelet == kubelet_;
  }

  bool MustServeAnew(Endpoint* endpoint, const std::optional<SocketIdentity>& kubelet) const {
    if (endpoint->other_options) return true;
    if (!Exists(endpoint->server->socket_path())) {
      Emit(EventKind::kKubeletGone, endpoint->resource(), "our socket has been removed");
      return true;
    }
    // Close the old kubelet's stream before registering with the new one. Otherwise kubelet would take the
    // late end of the old stream for the end of the new registration.
    const bool other = kubelet && endpoint->registered_with && *endpoint->registered_with != *kubelet;
    if (other) Emit(EventKind::kKubeletGone, endpoint->resource(), "kubelet.sock is another one");
    return other;
  }

  void HandleLostStream(Endpoint* endpoint, Clock::time_point now) const {
    const bool opened = endpoint->server->StreamsSoFar() > endpoint->streams_before;
    if (opened ? endpoint->server->NewestStreamIsOpen() : now < endpoint->registered_at + kStreamLimit)
      return;
    if (now > endpoint->registered_at + kSteady) endpoint->pause = kFirstPause;
    endpoint->registered_with.reset();
    // The old kubelet's stream may end as late as this. That does not mean that another railheadd has ended.
    if (now > kubelet_changed_at_ + kKubeletSettles) endpoint->lost_at = now;
    endpoint->reregister_at.reset();
    ScheduleRetry(endpoint);
    if (endpoint->standby) return;
    Emit(EventKind::kKubeletGone, endpoint->resource(),
         opened ? "kubelet has ended ListAndWatch" : "kubelet has not called ListAndWatch");
  }

  static void ScheduleRetry(Endpoint* endpoint) {
    endpoint->next_attempt = Clock::now() + endpoint->pause;
    endpoint->pause = std::clamp(endpoint->pause * 2, kFirstPause, kLongestPause);
  }

  void OnFailure(Endpoint* endpoint, EventKind kind, const Error& error) const {
    if (error.message != endpoint->last_error) Emit(kind, endpoint->resource(), "", error);
    endpoint->last_error = error.message;
    endpoint->activity->set_problem(Describe(error));
    if (kind == EventKind::kRegisterFailed) endpoint->activity->registration_failures.Add();
    ScheduleRetry(endpoint);
  }

  bool Serve(Endpoint* endpoint) {
    const std::string& directory = options_.kubelet_directory;
    const std::string name =
        SocketName(directory, endpoint->resource(), options_.socket_tag, endpoint->servers_so_far + 1);
    PluginServer::Wiring wiring;
    wiring.paths = options_.paths;
    wiring.root = options_.root;
    wiring.allocator = allocator_;
    wiring.activity = endpoint->activity;
    wiring.streams_changed = [this] { socket_watch_.Wake(); };
    wiring.report = [this](const CallReport& call) {
      sink_({EventKind::kCall, call.resource, call.method, call.device_ids, call.error, call.rewritten,
             call.cdi_unread});
    };
    auto server = PluginServer::Start(directory + "/" + name, endpoint->view, std::move(wiring));
    if (!server) {
      OnFailure(endpoint, EventKind::kServeFailed, server.error());
      return false;
    }
    endpoint->server = *std::move(server);
    ++endpoint->servers_so_far;
    endpoint->activity->set_problem("");
    Emit(EventKind::kServing, endpoint->resource(), endpoint->server->socket_path());
    return true;
  }

  void Register(const std::vector<Endpoint*>& endpoints) {
    // Reads the identity again: kubelet may have restarted since. A stale identity would make this process
    // serve again for nothing.
    const auto kubelet = IdentityOf(kubelet_socket_);
    if (!kubelet || endpoints.empty()) return;
    std::vector<KubeletClient::Registration> registrations;
    registrations.reserve(endpoints.size());
    for (Endpoint* endpoint : endpoints) {
      endpoint->streams_before = endpoint->server->StreamsSoFar();
      // A kubelet that starts removes our socket, and then dials it in vain until its time limit.
      const std::string& socket = endpoint->server->socket_path();
      registrations.push_back({endpoint->resource(), BaseName(socket), endpoint->server->PreStartRequired(),
                               [&socket] { return Exists(socket); }});
    }
    const auto done = client_.Register(registrations, kRegisterLimit);
    if (stopping_) return;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      if (done[i]) {
        OnRegistered(endpoints[i], *kubelet);
      } else {
        OnFailure(endpoints[i], EventKind::kRegisterFailed, done[i].error());
      }
    }
  }

  void OnRegistered(Endpoint* endpoint, const SocketIdentity& kubelet) const {
    endpoint->registered_with = kubelet;
    endpoint->last_kubelet = kubelet;
    endpoint->reregister_at.reset();
    endpoint->registered_at = Clock::now();
    endpoint->last_error.clear();
    endpoint->activity->registrations.Add();
    endpoint->activity->set_problem("");
    Publish(*endpoint);
    Emit(EventKind::kRegistered, endpoint->resource(), kubelet_socket_);
  }

  // Waits until something may have changed.
  void Wait() {
    auto until = Clock::time_point::max();
    for (const Endpoint& endpoint : endpoints_) {
      if (endpoint.other_instances.any()) until = std::min(until, Clock::now() + kStandbyPause);
      if (kubelet_ && endpoint.server && endpoint.reregister_at)
        until = std::min(until, *endpoint.reregister_at);
      if (endpoint.server && endpoint.registered_with) {
        if (endpoint.server->StreamsSoFar() == endpoint.streams_before)
          until = std::min(until, endpoint.registered_at + kStreamLimit);
      } else if (!endpoint.server || (kubelet_ && !LeavesToNewer(endpoint))) {
        until = std::min(until, endpoint.next_attempt);
      }
    }
    socket_watch_.WaitUntil(until);
  }

  const Options options_;
  const std::string kubelet_socket_;
  const Sink sink_;
  KubeletClient client_;
  std::shared_ptr<resources::Allocator> allocator_;
  SocketWatch socket_watch_;
  std::vector<std::string> removed_sockets_;  // sockets that came and went since the last step
  std::atomic<bool> stopping_ = false;
  std::optional<SocketIdentity> kubelet_;  // as of the last step
  Clock::time_point kubelet_changed_at_;   // the epoch: never
  Endpoints endpoints_;
};

Registrar::Registrar(Options options, const Advertisement& advertisement, Sink sink)
    : loop_(std::make_unique<Loop>(std::move(options), advertisement, std::move(sink))) {}
Registrar::~Registrar() = default;

Result<void> Registrar::Run() {
  return loop_->Run();
}
void Registrar::Stop() {
  loop_->Stop();
}
void Registrar::Update(Advertisement advertisement) {
  loop_->Update(std::move(advertisement));
}
std::vector<std::shared_ptr<const ResourceActivity>> Registrar::Activities() const {
  return loop_->Activities();
}

}  // namespace railhead::kubelet
