// Registrar: keeps every resource registered with kubelet, whatever happens to either.
//
// Per resource: serve on a socket of its own, register, and again when
//   - kubelet.sock is another one (kubelet has restarted),
//   - our socket's file is gone (a starting kubelet removes all sockets in its
//     directory): then also serve anew, on a new path,
//   - kubelet has dropped ListAndWatch while it kept its socket: the one that it opened
//     after the last Register, as a stream of before tells nothing,
//   - another process of ours has left the resource. Of two, as during an
//     update, the older stands by while the newer is there: two that each take the
//     resource back would make kubelet see it come and go. It keeps its stream, so that
//     nothing ends before the newer one has registered.
// With kubelet's plugin watcher (Options::registry_directory) it is kubelet that comes, once for each
// socket: to be asked again is to serve anew. kubelet.sock tells that it is another kubelet all the same.
//
// kubelet's socket is recognised by inode and creation time, so an event that comes
// late, after we registered with that very socket, does nothing. Failures are tried
// again with growing pauses, at once when kubelet.sock changes.
// Devices are always sent as last known, never as unhealthy in between: a pod that
// is admitted in that window would be refused.
//
// Update() changes what is offered while it runs: a resource that stays keeps its server
// and its stream, whatever happens to others. One that is offered no more is told as
// without devices: to end its stream would leave its capacity in the node for minutes.
//
// Ownership: owns the servers. Threads: Run() on one thread, Stop() and Update() from any; `sink`
// is called from Run()'s thread and from gRPC's threads.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/kubelet/plugin_server.h"
#include "deviceplugin/services/kubelet/plugin_sockets.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::kubelet {

enum class EventKind : std::uint8_t {
  kServing,         // detail: the socket's path
  kRegistered,      // detail: kubelet's socket
  kRegisterFailed,  // error; repeated only when it changes
  kServeFailed,     // error
  kKubeletGone,     // kubelet dropped the resource; detail: why we think so
  kStandingBy,      // detail: the newer server's socket
  kCall,            // a call of kubelet's; error when it was refused
};

struct Event {
  EventKind kind;
  std::string resource;
  std::string detail;
  std::vector<std::string> device_ids;
  std::optional<Error> error;
  std::vector<std::string> rewritten;  // CallReport::rewritten
  bool cdi_unread = false;             // CallReport::cdi_unread
};

class Registrar {
 public:
  struct Options {
    Root root;
    std::string kubelet_directory;  // of kubelet.sock, as seen by this process
    // Not empty: our sockets are there, for kubelet's plugin watcher to find, and Register is
    // not called.
    std::string registry_directory;
    // Told apart from other processes' sockets, also across containers in which
    // every process is number 1.
    std::string socket_tag;
    PluginServer::Paths paths;  // of all resources' servers
    // Called by Run() at each step; the next one comes within the time that it is given.
    std::function<void(std::chrono::seconds)> alive;  // may be empty
  };
  using Sink = std::function<void(const Event&)>;

  Registrar(Options options, const Offer& offer, Sink sink);
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;
  ~Registrar();

  // Serves and registers until Stop(); then ends the streams, removes the sockets and
  // returns. An error is one that no retry helps against (no inotify, no memory).
  Result<void> Run();
  void Stop();
  void Update(Offer offer);
  // Of every resource that was ever offered, in that order. From any thread.
  [[nodiscard]] std::vector<std::shared_ptr<const ResourceActivity>> Activities() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// sun_path without its final 0.
inline constexpr std::size_t kMaxSocketPath = 107;

// The file name of one server's socket: railhead-RESOURCE-TAG-N.sock, with a hash in
// the resource's place where the path would be too long for a socket.
std::string SocketName(const std::string& directory, const std::string& resource, const std::string& tag,
                       int number);

// Too long a path never becomes shorter, so this is said once, at the start. `option` names the
// directory to the user.
Result<void> CheckSocketPath(const std::string& directory, const std::string& resource,
                             const std::string& tag, const std::string& option);

// Removes sockets that earlier processes left behind: railhead-*.sock which nobody
// listens on. Returns their names.
std::vector<std::string> RemoveStaleSockets(const std::string& directory);

// Endpoints: one for every resource that was ever offered, in that order. Of use to the Registrar only.
//
// Update() takes note of a new offer, TakeUpdate() puts it into effect. A resource that stays keeps
// its server and its stream; one that is offered no more is told as without devices.
// Ownership: owns the endpoints and so their servers. Threads: Update() and Activities() from any, the
// rest from Registrar::Run()'s.

// Endpoint: one resource of the Registrar's, and how far it is. Of use to nobody else.
//
// Ownership: owns its server. Threads: Registrar::Run()'s only.

// Which socket a file is: inode numbers are used again, but not at the same time.
// (Not the change time: labels and modes may be set later.)
struct SocketIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t made_ns = 0;
  bool operator==(const SocketIdentity&) const = default;
};

// nullopt: there is no socket.
std::optional<SocketIdentity> IdentityOf(const std::string& path);

// Pods that are admitted meanwhile are refused; but kubelet has to be done with the stream that
// ended, or it takes the new registration for that one.
inline constexpr std::chrono::milliseconds kFirstPause{20};

struct Endpoint {
  using Clock = std::chrono::steady_clock;

  PluginServer::View view;
  std::shared_ptr<ResourceActivity> activity;
  std::unique_ptr<PluginServer> server;
  int servers_so_far = 0;
  std::optional<SocketIdentity> registered_with;
  std::optional<SocketIdentity> last_kubelet;  // that took our registration, whatever came later
  int streams_before = 0;                      // StreamsSoFar() when Register or GetInfo was called
  int verdicts_seen = 0;                       // of the plugin watcher, on this server
  Clock::time_point registered_at;
  Clock::time_point next_attempt;  // of serving or registering
  std::chrono::milliseconds pause = kFirstPause;
  std::string last_error;
  Siblings siblings;
  bool standing_by = false;
  Clock::time_point lost_at;                      // a stream
  std::optional<Clock::time_point> ask_again_at;  // unless kubelet drops us before

  [[nodiscard]] const std::string& resource() const { return view.pool->spec.resource; }
};

class Endpoints {
 public:
  explicit Endpoints(const Offer& offer) { Take(offer); }

  void Update(Offer offer);
  void TakeUpdate();
  [[nodiscard]] std::vector<std::shared_ptr<const ResourceActivity>> Activities() const;

  auto begin() { return endpoints_.begin(); }
  auto end() { return endpoints_.end(); }
  [[nodiscard]] auto begin() const { return endpoints_.begin(); }
  [[nodiscard]] auto end() const { return endpoints_.end(); }

 private:
  void Take(const Offer& offer);
  Endpoint& EndpointOf(const std::shared_ptr<const resources::ResourcePool>& pool);
  static void Replace(Endpoint* endpoint, PluginServer::View view);

  std::vector<Endpoint> endpoints_;

  std::mutex update_mutex_;
  std::optional<Offer> update_;

  mutable std::mutex activities_mutex_;
  std::vector<std::shared_ptr<const ResourceActivity>> activities_;
};

}  // namespace railhead::kubelet
