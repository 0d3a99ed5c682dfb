// Endpoints: one for every resource that was ever offered, in that order. Of use to the Registrar only.
//
// Update() takes note of a new offer, TakeUpdate() puts it into effect. A resource that stays keeps
// its server and its stream; one that is offered no more is told as without devices.
// Ownership: owns the endpoints and so their servers. Threads: Update() and Activities() from any, the
// rest from Registrar::Run()'s.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/kubelet/endpoint.h"

namespace railhead {

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
