#include "deviceplugin/services/kubelet/pod_resources.h"

#include <grpcpp/grpcpp.h>

#include <iterator>
#include <utility>

#include "deviceplugin/services/kubelet/dial_unix.h"
#include "deviceplugin/services/kubelet/proto/podresources_v1.grpc.pb.h"
#include "netns/base/files.h"
#include "netns/base/mutex.h"

namespace railhead::kubelet {
namespace {

// Moves the ids: there can be a hundred thousand.
void AddContainer(const std::string& pod, v1::ContainerResources& container,
                  std::vector<AllocatedDevices>* all) {
  for (auto& devices : *container.mutable_devices()) {
    auto& ids = *devices.mutable_device_ids();
    all->push_back({pod,
                    container.name(),
                    devices.resource_name(),
                    {std::make_move_iterator(ids.begin()), std::make_move_iterator(ids.end())}});
  }
  for (const auto& dynamic : container.dynamic_resources()) {
    for (const auto& claim : dynamic.claim_resources()) {
      if (!claim.device_name().empty())
        all->push_back({pod, container.name(), claim.driver_name(), {claim.device_name()}});
    }
  }
}

}  // namespace

class PodResources::Impl {
 public:
  explicit Impl(std::string socket_path) : socket_path_(std::move(socket_path)) {}

  grpc::Status List(std::chrono::milliseconds limit, v1::ListPodResourcesResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    const auto channel = Channel();
    grpc::Status status = v1::PodResourcesLister::NewStub(channel)->List(&context, {}, response);
    // After kubelet went away, a channel waits longer and longer before it dials again.
    if (!status.ok()) Drop(channel);
    return status;
  }

  [[nodiscard]] const std::string& socket_path() const { return socket_path_; }

 private:
  std::shared_ptr<grpc::Channel> Channel() {
    const MutexLock lock(mutex_);
    if (!channel_) channel_ = DialUnix(socket_path_);
    return channel_;
  }
  void Drop(const std::shared_ptr<grpc::Channel>& channel) {
    const MutexLock lock(mutex_);
    if (channel_ == channel) channel_.reset();
  }

  const std::string socket_path_;
  Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ RH_GUARDED_BY(mutex_);
};

PodResources::PodResources(const Root& root)
    : impl_(std::make_unique<Impl>(root.Path(kPodResourcesSocket))) {}
PodResources::~PodResources() = default;

Result<std::vector<AllocatedDevices>> PodResources::List(std::chrono::milliseconds limit) {
  const std::string attempt = "asking kubelet at " + impl_->socket_path() + " for the pods' devices: ";
  if (!Exists(impl_->socket_path())) {
    return Fail(ErrorCode::kNotFound, attempt + "no such socket",
                "give railheadd kubelet's directory /var/lib/kubelet/pod-resources");
  }
  v1::ListPodResourcesResponse response;
  const grpc::Status status = impl_->List(limit, &response);
  if (!status.ok()) {
    const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    const bool large = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    return Fail(late ? ErrorCode::kTimeout : ErrorCode::kIo, attempt + status.error_message(),
                large
                    ? "a device plugin that counts memory lists a device for each piece: let it count larger "
                      "pieces, such as GiB"
                    : "");
  }
  std::vector<AllocatedDevices> all;
  for (auto& pod : *response.mutable_pod_resources()) {
    const std::string name = pod.namespace_() + "/" + pod.name();
    for (auto& container : *pod.mutable_containers()) AddContainer(name, container, &all);
  }
  return all;
}

}  // namespace railhead::kubelet
