// Endpoints: one for every resource that was ever advertised, in that order. For the Registrar only.
//
// Take() applies an advertisement. A resource that stays keeps its server and its stream. For a resource that
// was dropped, the stream gets an empty list. Ownership: owns the endpoints and so their servers. Threads:
// Activities() from any, the rest from Registrar::Run()'s.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/node/snapshot/advertisement.h"
#include "deviceplugin/services/kubelet/other_instances.h"
#include "deviceplugin/services/kubelet/plugin_server.h"
#include "deviceplugin/services/kubelet/registration_machine.h"
#include "deviceplugin/services/kubelet/resource_activity.h"
#include "netns/base/mutex.h"

namespace railhead::kubelet {

// One resource, and its state. Owns its server.
struct Endpoint {
  PluginServer::View view;
  std::shared_ptr<ResourceActivity> activity;
  RegistrationMachine registration;
  std::unique_ptr<PluginServer> server;  // nullptr: kNotServed
  int servers_so_far = 0;
  int streams_before = 0;  // StreamsSoFar() when Register was called
  OtherInstances other_instances;
  std::string last_error;

  [[nodiscard]] const std::string& resource() const { return view.pool->spec.resource; }
  // Whether the options of the server, which is there, are those of the view. kubelet asks for them only when
  // the server registers.
  [[nodiscard]] bool HasOptions() const { return server->PreStartRequired() == NeedsPreStart(*view.pool); }
};

class Endpoints {
 public:
  void Take(const Advertisement& advertisement);
  [[nodiscard]] std::vector<std::shared_ptr<const ResourceActivity>> Activities() const;

  auto begin() { return endpoints_.begin(); }
  auto end() { return endpoints_.end(); }
  [[nodiscard]] auto begin() const { return endpoints_.begin(); }
  [[nodiscard]] auto end() const { return endpoints_.end(); }

 private:
  Endpoint& EndpointOf(const std::shared_ptr<const resources::ResourcePool>& pool);
  static void Replace(Endpoint* endpoint, PluginServer::View view);

  std::vector<Endpoint> endpoints_;

  mutable Mutex activities_mutex_;
  std::vector<std::shared_ptr<const ResourceActivity>> activities_ RH_GUARDED_BY(activities_mutex_);
};

}  // namespace railhead::kubelet
