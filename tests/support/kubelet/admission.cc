// Pods: which devices they get, and what the stand-in remembers about them.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "netns/base/files.h"
#include "tests/support/kubelet/device_manager_impl.h"

namespace railhead::testing {
namespace {

using Ids = std::set<std::string>;

constexpr int kWithoutTopology = -1;

Ids Without(const Ids& ids, const Ids& others) {
  Ids left;
  std::set_difference(ids.begin(), ids.end(), others.begin(), others.end(), std::inserter(left, left.end()));
  return left;
}

Ids Both(const Ids& ids, const Ids& others) {
  Ids both;
  std::set_intersection(ids.begin(), ids.end(), others.begin(), others.end(),
                        std::inserter(both, both.end()));
  return both;
}

tl::unexpected<Error> Gone() {
  return Fail(ErrorCode::kConflict, "kubelet has stopped");
}

}  // namespace

// Only for kubelet's own directory, since /var/lib/kubelet/pods is beside it.
std::optional<std::string> DeviceManager::Impl::DirectoryOfPod(const std::string& pod_uid) const {
  constexpr std::string_view kOwn = "/device-plugins";
  if (!directory_.ends_with(kOwn)) return std::nullopt;
  return directory_.substr(0, directory_.size() - kOwn.size()) + "/pods/" + pod_uid;
}

Result<DeviceManager::Allocations> DeviceManager::Impl::Admit(const std::string& pod_uid,
                                                              const std::vector<PodContainer>& containers) {
  int life = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return Gone();
    life = life_;
  }
  // kubelet does this before the sandbox exists (makePodDataDirs in pkg/kubelet/kubelet.go, SyncPod).
  if (const auto directory = DirectoryOfPod(pod_uid)) RH_TRY(MakeDirectories(*directory));
  Allocations given;
  std::map<std::string, Ids> reusable;
  for (const bool init : {true, false}) {
    for (const PodContainer& container : containers) {
      if (container.init != init) continue;
      RH_TRY_WRAP(AdmitContainer(pod_uid, container, life, &reusable, &given[container.name]),
                  "UnexpectedAdmissionError: Allocate failed for container " + container.name);
    }
  }
  return given;
}

Result<void> DeviceManager::Impl::AdmitContainer(const std::string& pod_uid, const PodContainer& container,
                                                 int life, std::map<std::string, Ids>* reusable,
                                                 std::map<std::string, SeenAllocation>* given) {
  std::vector<std::string> order;
  order.reserve(container.wants.size());
  for (const auto& [resource, count] : container.wants) order.push_back(resource);
  for (const std::string& resource : Shuffled(std::move(order))) {
    const Request request{pod_uid, container.name, resource, container.wants.at(resource), life};
    Ids& reuse = (*reusable)[resource];
    const Ids ids = RH_TRY(DevicesToAllocate(request, reuse));
    if (!ids.empty()) {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto endpoint = Endpoint(resource);
      const auto order_of_ids = Shuffled(ids);
      lock.unlock();
      At(Step::kAllocating, resource);
      auto seen =
          endpoint ? (*endpoint)->Allocate(order_of_ids) : Result<SeenAllocation>(Fail(endpoint.error()));
      At(Step::kAllocated, resource);
      lock.lock();
      if (life_ != life) return Gone();
      if (seen) Remember(request, ids, *seen);
      RecountAllocated();
      if (!seen) return Fail(std::move(seen).error());
      (*given)[resource] = *std::move(seen);
    }
    const std::unique_lock<std::mutex> lock(mutex_);
    const auto* entry = EntryOf(request);
    if (entry == nullptr) continue;
    for (const std::string& id : entry->Ids()) {
      if (container.init) {
        reuse.insert(id);
      } else {
        reuse.erase(id);
      }
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (life_ != life) return Gone();
  if (!given->empty()) WriteState();
  return {};
}

// Empty when the container already has all its devices.
Result<Ids> DeviceManager::Impl::DevicesToAllocate(const Request& request, const Ids& reusable) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (life_ != request.life) return Gone();
  const auto found = resources_.find(request.resource);
  if (found == resources_.end() && !allocated_.contains(request.resource))
    return Fail(ErrorCode::kNotFound, "no plugin has registered " + request.resource);
  Ids has;
  if (const auto* entry = EntryOf(request)) {
    for (const std::string& id : entry->Ids()) has.insert(id);
    if (has.size() != request.count) {
      return Fail(ErrorCode::kInvalid, "pod \"" + request.pod_uid + "\" container \"" + request.container +
                                           "\" changed request for resource \"" + request.resource + "\"");
    }
  }
  if (found == resources_.end() || !found->second.listed)
    return Fail(ErrorCode::kConflict, "cannot allocate unregistered device " + request.resource);
  const Ids& healthy = found->second.healthy;
  if (healthy.empty()) {
    return Fail(ErrorCode::kExhausted,
                "no healthy devices present; cannot allocate unhealthy devices " + request.resource);
  }
  if (!std::includes(healthy.begin(), healthy.end(), has.begin(), has.end())) {
    return Fail(ErrorCode::kConflict,
                "previously allocated devices are no longer healthy; cannot allocate unhealthy devices " +
                    request.resource);
  }
  if (!has.empty()) return Ids{};
  return Choose(request, reusable, &lock);
}

Result<Ids> DeviceManager::Impl::Choose(const Request& request, const Ids& reusable,
                                        std::unique_lock<std::mutex>* lock) {
  Ids chosen;
  const auto take = [&](const Ids& from) {
    for (const std::string& id : Shuffled(Without(from, chosen))) {
      if (chosen.size() == request.count) break;
      chosen.insert(id);
      allocated_[request.resource].insert(id);
    }
    return chosen.size() == request.count;
  };
  if (take(reusable)) return chosen;
  const Ids available = Without(resources_[request.resource].healthy, allocated_[request.resource]);
  if (available.size() < request.count - chosen.size()) {
    RecountAllocated();
    return Fail(ErrorCode::kExhausted, "requested number of devices unavailable for " + request.resource +
                                           ". Requested: " + std::to_string(request.count - chosen.size()) +
                                           ", Available: " + std::to_string(available.size()));
  }
  const Ids aligned = Aligned(request.resource, available);
  const bool enough = request.count - chosen.size() < aligned.size();
  if (!enough && take(aligned)) return chosen;
  Ids candidates = enough ? aligned : available;
  candidates.insert(chosen.begin(), chosen.end());
  const auto preferred = Prefer(request, candidates, chosen, lock);
  if (life_ != request.life) return Gone();
  if (!preferred) {
    RecountAllocated();
    return Fail(preferred.error());
  }
  if (take(Both(*preferred, enough ? aligned : available)) || take(enough ? aligned : available))
    return chosen;
  RecountAllocated();
  return Fail(ErrorCode::kExhausted,
              "unexpectedly allocated less resources than required of " + request.resource);
}

// kubelet also releases its lock for the call.
Result<Ids> DeviceManager::Impl::Prefer(const Request& request, const Ids& available, const Ids& must_include,
                                        std::unique_lock<std::mutex>* lock) {
  const Client endpoint = RH_TRY(Endpoint(request.resource));
  if (!endpoint->preferred()) return Ids{};
  const auto order = Shuffled(available);
  const auto must = Shuffled(must_include);
  lock->unlock();
  At(Step::kPreferring, request.resource);
  const auto answer = endpoint->Prefer(order, must, request.count);
  At(Step::kPreferred, request.resource);
  lock->lock();
  if (!answer) return Fail(answer.error());
  return Ids(answer->begin(), answer->end());
}

// The devices on the nodes that the topology manager has chosen; empty without such a choice.
Ids DeviceManager::Impl::Aligned(const std::string& resource, const Ids& available) const {
  Ids aligned;
  const auto& all = resources_.at(resource).all;
  for (const std::string& id : available) {
    const auto& nodes = all.at(id).numa_nodes;
    if (std::any_of(nodes.begin(), nodes.end(), [&](int node) { return options_.affinity.contains(node); }))
      aligned.insert(id);
  }
  return aligned;
}

void DeviceManager::Impl::Remember(const Request& request, const Ids& ids, const SeenAllocation& seen) {
  PodDevicesEntry entry{request.pod_uid, request.container, request.resource, {}, Base64(seen.message)};
  const auto& all = resources_[request.resource].all;
  for (const std::string& id : ids) {
    const auto found = all.find(id);
    if (found == all.end() || found->second.numa_nodes.empty()) entry.ids[kWithoutTopology].push_back(id);
    if (found == all.end()) continue;
    for (const int node : found->second.numa_nodes) entry.ids[node].push_back(id);
  }
  pods_.push_back(std::move(entry));
}

const PodDevicesEntry* DeviceManager::Impl::EntryOf(const Request& request) const {
  for (const PodDevicesEntry& entry : pods_) {
    if (entry.pod_uid == request.pod_uid && entry.container == request.container &&
        entry.resource == request.resource)
      return &entry;
  }
  return nullptr;
}

Result<DeviceManager::Impl::Client> DeviceManager::Impl::Endpoint(const std::string& resource) const {
  const auto found = resources_.find(resource);
  if (found == resources_.end()) return Fail(ErrorCode::kNotFound, "no plugin has registered " + resource);
  if (found->second.stopped || !found->second.endpoint)
    return Fail(ErrorCode::kConflict, "endpoint of " + resource + " has been stopped");
  return found->second.endpoint;
}

void DeviceManager::Impl::RecountAllocated() {
  allocated_.clear();
  for (const PodDevicesEntry& entry : pods_) {
    for (const std::string& id : entry.Ids()) allocated_[entry.resource].insert(id);
  }
}

std::vector<std::string> DeviceManager::Impl::Shuffled(const Ids& ids) {
  std::vector<std::string> order(ids.begin(), ids.end());
  std::shuffle(order.begin(), order.end(), random_);
  return order;
}

std::vector<std::string> DeviceManager::Impl::Shuffled(std::vector<std::string> ids) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shuffle(ids.begin(), ids.end(), random_);
  return ids;
}

void DeviceManager::Impl::Say(const TraceEvent& event) {
  Client endpoint;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = Endpoint(event.resource);
    if (!found) return;
    endpoint = *found;
  }
  const auto* containers = Field(event.request, "containerRequests");
  const bool some = containers != nullptr && containers->is_array() && !containers->empty();
  const nlohmann::json container = some ? (*containers)[0] : event.request;
  if (event.call == "GetPreferredAllocation") {
    const auto* size = Field(container, "allocationSize");
    (void)endpoint->Prefer(IdsIn(Field(container, "availableDeviceIDs")),
                           IdsIn(Field(container, "mustIncludeDeviceIDs")),
                           size != nullptr ? size->get<std::size_t>() : 0);
  } else if (event.call == "Allocate") {
    (void)endpoint->Allocate(IdsIn(Field(container, "devicesIds")));
  } else if (event.call == "PreStartContainer") {
    (void)endpoint->PreStart(IdsIn(Field(container, "devicesIds")));
  }
}

Result<SeenAllocation> DeviceManager::Impl::Allocate(const std::string& resource, std::size_t count) {
  std::string uid;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    do {
      uid = "pod-" + std::to_string(++pods_so_far_);
    } while (std::any_of(pods_.begin(), pods_.end(), [&](const auto& pod) { return pod.pod_uid == uid; }));
  }
  auto given = RH_TRY(Admit(uid, {{"c", {{resource, count}}}}));
  return std::move(given["c"][resource]);
}

Result<void> DeviceManager::Impl::PreStart(const std::string& resource, const std::vector<std::string>& ids) {
  Client endpoint;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    endpoint = RH_TRY(Endpoint(resource));
  }
  if (!endpoint->pre_start()) return {};
  At(Step::kPreStarting, resource);
  const auto done = endpoint->PreStart(ids);
  At(Step::kPreStarted, resource);
  return done;
}

Result<void> DeviceManager::Impl::PreStartPod(const std::string& pod_uid, const std::string& container) {
  std::vector<PodDevicesEntry> entries;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const PodDevicesEntry& entry : pods_) {
      if (entry.pod_uid == pod_uid && entry.container == container) entries.push_back(entry);
    }
  }
  for (const PodDevicesEntry& entry : entries) RH_TRY(PreStart(entry.resource, Shuffled(entry.Ids())));
  return {};
}

void DeviceManager::Impl::Release(const std::string& resource, const std::vector<std::string>& ids) {
  const std::lock_guard<std::mutex> life(life_mutex_);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (PodDevicesEntry& entry : pods_) {
    if (entry.resource != resource) continue;
    for (auto& [node, of_node] : entry.ids) {
      std::erase_if(of_node,
                    [&](const auto& id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); });
    }
  }
  std::erase_if(pods_, [](const PodDevicesEntry& entry) { return entry.Ids().empty(); });
  RecountAllocated();
  WriteState();
}

void DeviceManager::Impl::RemovePod(const std::string& pod_uid) {
  const std::lock_guard<std::mutex> life(life_mutex_);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(pods_, [&](const PodDevicesEntry& entry) { return entry.pod_uid == pod_uid; });
  if (const auto directory = DirectoryOfPod(pod_uid)) (void)RemoveEmptyDirectory(*directory);
  RecountAllocated();
  WriteState();
}

std::map<std::pair<std::string, std::string>, Ids> DeviceManager::Impl::Allocated(
    const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::pair<std::string, std::string>, Ids> all;
  for (const PodDevicesEntry& entry : pods_) {
    if (entry.resource != resource) continue;
    for (const std::string& id : entry.Ids()) all[{entry.pod_uid, entry.container}].insert(id);
  }
  return all;
}

Result<DeviceManager::Allocations> DeviceManager::Admit(const std::string& pod_uid,
                                                        const std::vector<PodContainer>& containers) {
  return impl_->Admit(pod_uid, containers);
}
void DeviceManager::Say(const TraceEvent& event) {
  impl_->Say(event);
}
Result<SeenAllocation> DeviceManager::Allocate(const std::string& resource, std::size_t count) {
  return impl_->Allocate(resource, count);
}
void DeviceManager::Release(const std::string& resource, const std::vector<std::string>& ids) {
  impl_->Release(resource, ids);
}
Result<void> DeviceManager::PreStart(const std::string& resource, const std::vector<std::string>& ids) {
  return impl_->PreStart(resource, ids);
}
Result<void> DeviceManager::PreStartPod(const std::string& pod_uid, const std::string& container) {
  return impl_->PreStartPod(pod_uid, container);
}
void DeviceManager::RemovePod(const std::string& pod_uid) {
  impl_->RemovePod(pod_uid);
}
std::map<std::pair<std::string, std::string>, Ids> DeviceManager::Allocated(
    const std::string& resource) const {
  return impl_->Allocated(resource);
}

}  // namespace railhead::testing
