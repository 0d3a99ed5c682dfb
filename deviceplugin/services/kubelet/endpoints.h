// Endpoints: one for every resource that was ever advertised, in that order. For the Registrar only.
//
// Update() stores a new advertisement, TakeUpdate() applies it. A resource that stays keeps its server and
// its stream. For a resource that was dropped, the stream gets an empty list.
// Ownership: owns the endpoints and so their servers. Threads: Update() and Activities() from any, the
// rest from Registrar::Run()'s.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/kubelet/other_instances.h"
#include "deviceplugin/services/kubelet/plugin_server.h"
#include "deviceplugin/services/kubelet/resource_activity.h"
#include "deviceplugin/services/kubelet/socket_identity.h"

namespace railhead::kubelet {

// kubelet refuses pods that it admits in this pause. But kubelet must first finish the stream that ended.
// Otherwise it takes that end for the end of the new registration.
inline constexpr std::chrono::milliseconds kFirstPause{20};

// One resource, and its state. Owns its server.
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
