// Endpoints: one for every resource that was ever offered, in that order. Of use to the Registrar only.
//
// Update() takes note of a new offer, TakeUpdate() puts it into effect. A resource that stays keeps
// its server and its stream; one that is offered no more is told as without devices.
// Ownership: owns the endpoints and so their servers. Threads: Update() and Activities() from any, the
// rest from Registrar::Run()'s.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/kubelet/plugin_server.h"
#include "deviceplugin/services/kubelet/plugin_sockets.h"

namespace railhead {

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
  Endpoint& EndpointOf(const std::shared_ptr<const ResourcePool>& pool);
  static void Replace(Endpoint* endpoint, PluginServer::View view);

  std::vector<Endpoint> endpoints_;

  std::mutex update_mutex_;
  std::optional<Offer> update_;

  mutable std::mutex activities_mutex_;
  std::vector<std::shared_ptr<const ResourceActivity>> activities_;
};

}  // namespace railhead
