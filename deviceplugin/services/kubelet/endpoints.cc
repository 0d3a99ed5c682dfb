#include "deviceplugin/services/kubelet/endpoints.h"

#include <set>
#include <string>
#include <utility>

#include "netns/base/mutex.h"

namespace railhead::kubelet {

std::vector<std::shared_ptr<const ResourceActivity>> Endpoints::Activities() const {
  const MutexLock lock(activities_mutex_);
  return activities_;
}

void Endpoints::Take(const Advertisement& advertisement) {
  std::set<std::string> offered;
  for (const auto& pool : advertisement.pools) {
    offered.insert(pool->spec.resource);
    const auto lost = advertisement.lost.find(pool->spec.resource);
    Replace(&EndpointOf(pool), {pool, advertisement.unhealthy,
                                lost == advertisement.lost.end() ? std::set<std::string>() : lost->second});
  }
  for (Endpoint& endpoint : endpoints_) {
    const bool empty_now = endpoint.view.pool->members.empty() && endpoint.view.lost.empty();
    if (offered.contains(endpoint.resource()) || empty_now) continue;
    auto empty = std::make_shared<resources::ResourcePool>();
    empty->spec = endpoint.view.pool->spec;
    Replace(&endpoint, {std::move(empty), nullptr, {}});
  }
}

Endpoint& Endpoints::EndpointOf(const std::shared_ptr<const resources::ResourcePool>& pool) {
  for (Endpoint& endpoint : endpoints_) {
    if (endpoint.resource() == pool->spec.resource) return endpoint;
  }
  endpoints_.emplace_back();
  endpoints_.back().view.pool = pool;
  endpoints_.back().activity = std::make_shared<ResourceActivity>(pool->spec.resource);
  const MutexLock lock(activities_mutex_);
  activities_.push_back(endpoints_.back().activity);
  return endpoints_.back();
}

void Endpoints::Replace(Endpoint* endpoint, PluginServer::View view) {
  endpoint->view = std::move(view);
  // With other options the registrar replaces the server.
  if (endpoint->server && endpoint->HasOptions()) endpoint->server->Update(endpoint->view);
}

}  // namespace railhead::kubelet
