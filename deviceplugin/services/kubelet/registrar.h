// Registrar: keeps every resource registered with kubelet.
//
// Per resource it serves on a socket of its own and registers. It registers again in these cases.
//
//   - kubelet.sock has changed: kubelet has restarted.
//
//   - Our socket's file is gone: a starting kubelet removes all sockets in its directory. Then the registrar
//     also serves on a new path.
//
//   - kubelet has dropped ListAndWatch while it kept its socket. Only the stream counts that kubelet opened
//     after the last Register.
//
//   - Another railheadd process has given up the resource. If two run, as during an update, the older one is
//     on standby while the newer one serves. Otherwise the two would take the resource from each other again
//     and again. The older one keeps its stream, so that nothing ends before the newer one has registered.
//
// kubelet's socket is identified by inode and creation time, so a late event, after the registration with
// that very socket, has no effect. Failures are tried again with growing pauses, and at once when
// kubelet.sock changes. Devices are always sent with their last known health, never as unhealthy in between:
// kubelet would refuse a pod that it admits in that window.
// Update() changes the advertisement while the registrar runs. A resource that stays keeps its server and its
// stream. For a resource that was dropped, the stream gets an empty list. If the stream ended, kubelet would
// keep the resource's capacity in the node for minutes.
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
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

enum class EventKind : std::uint8_t {
  kServing,         // detail: the socket's path
  kRegistered,      // detail: kubelet's socket
  kRegisterFailed,  // error; repeated only when it changes
  kServeFailed,     // error
  kKubeletGone,     // kubelet dropped the resource; detail: why we think so
  kStandby,         // detail: the newer server's socket
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
    std::string kubelet_directory;  // of kubelet.sock and of our sockets, as seen by this process
    // Distinguishes our sockets from those of other processes, also across containers in which every process
    // is number 1.
    std::string socket_tag;
    PluginServer::Paths paths;  // of all resources' servers
    // Called by Run() at each step; its argument is the longest time until the next call.
    std::function<void(std::chrono::seconds)> alive;  // may be empty
  };
  using Sink = std::function<void(const Event&)>;

  Registrar(Options options, const Advertisement& advertisement, Sink sink);
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;
  ~Registrar();

  // Serves and registers until Stop(). Then it ends the streams, removes the sockets and returns. A returned
  // error is one that a retry cannot fix (no inotify, no memory).
  Result<void> Run();
  void Stop();
  void Update(Advertisement advertisement);
  // Of every resource that was ever advertised, in that order. From any thread.
  [[nodiscard]] std::vector<std::shared_ptr<const ResourceActivity>> Activities() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// sun_path without its final 0.
inline constexpr std::size_t kMaxSocketPath = 107;

// The file name of one server's socket: railhead-RESOURCE-TAG-N.sock. A hash replaces the resource where the
// path would be too long for a socket.
std::string SocketName(const std::string& directory, const std::string& resource, const std::string& tag,
                       int number);

// An error at the start, since the path never becomes shorter.
Result<void> CheckSocketPath(const std::string& directory, const std::string& resource,
                             const std::string& tag);

// Removes sockets that earlier processes left behind: railhead-*.sock without a listener. Returns their
// names.
std::vector<std::string> RemoveStaleSockets(const std::string& directory);

// Endpoints: one for every resource that was ever advertised, in that order. For the Registrar only.
//
// Update() stores a new advertisement, TakeUpdate() applies it. A resource that stays keeps its server and
// its stream. For a resource that was dropped, the stream gets an empty list.
// Ownership: owns the endpoints and so their servers. Threads: Update() and Activities() from any, the
// rest from Registrar::Run()'s.

// Endpoint: one resource of the Registrar, and its state. For the Registrar only.
//
// Ownership: owns its server. Threads: Registrar::Run()'s only.

// The identity of a socket's file: inode numbers are used again, but not at the same time. (Not the change
// time: labels and modes may be set later.)
struct SocketIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t made_ns = 0;
  bool operator==(const SocketIdentity&) const = default;
};

// nullopt: the socket does not exist.
std::optional<SocketIdentity> IdentityOf(const std::string& path);

// kubelet refuses pods that it admits in this pause. But kubelet must first finish the stream that ended.
// Otherwise it takes that end for the end of the new registration.
inline constexpr std::chrono::milliseconds kFirstPause{20};

struct Endpoint {
  using Clock = std::chrono::steady_clock;

  PluginServer::View view;
  std::shared_ptr<ResourceActivity> activity;
  std::unique_ptr<PluginServer> server;
  bool other_options = false;  // kubelet asks for them only when the server is registered
  int servers_so_far = 0;
  std::optional<SocketIdentity> registered_with;
  std::optional<SocketIdentity> last_kubelet;  // the last one that took our registration
  int streams_before = 0;                      // StreamsSoFar() when Register was called
  Clock::time_point registered_at;
  Clock::time_point next_attempt;  // of serving or registering
  std::chrono::milliseconds pause = kFirstPause;
  std::string last_error;
  OtherInstances other_instances;
  bool standby = false;
  Clock::time_point lost_at;                       // when a stream was lost
  std::optional<Clock::time_point> reregister_at;  // unless kubelet drops us before

  [[nodiscard]] const std::string& resource() const { return view.pool->spec.resource; }
};

class Endpoints {
 public:
  explicit Endpoints(const Advertisement& advertisement) { Take(advertisement); }

  void Update(Advertisement advertisement);
  void TakeUpdate();
  [[nodiscard]] std::vector<std::shared_ptr<const ResourceActivity>> Activities() const;

  auto begin() { return endpoints_.begin(); }
  auto end() { return endpoints_.end(); }
  [[nodiscard]] auto begin() const { return endpoints_.begin(); }
  [[nodiscard]] auto end() const { return endpoints_.end(); }

 private:
  void Take(const Advertisement& advertisement);
  Endpoint& EndpointOf(const std::shared_ptr<const resources::ResourcePool>& pool);
  static void Replace(Endpoint* endpoint, PluginServer::View view);

  std::vector<Endpoint> endpoints_;

  std::mutex update_mutex_;
  std::optional<Advertisement> update_;

  mutable std::mutex activities_mutex_;
  std::vector<std::shared_ptr<const ResourceActivity>> activities_;
};

}  // namespace railhead::kubelet
