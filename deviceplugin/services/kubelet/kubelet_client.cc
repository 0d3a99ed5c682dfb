#include "deviceplugin/services/kubelet/kubelet_client.h"

#include <grpc/grpc.h>

#include <condition_variable>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"
#include "deviceplugin/services/kubelet/proto/podresources_v1.grpc.pb.h"
#include "netns/base/files.h"
#include "netns/base/root.h"

namespace railhead::kubelet {
namespace {

// gRPC's default is 4 MiB. kubelet's own clients take 16 MiB (DefaultPodResourcesMaxSize in
// pkg/kubelet/apis/podresources/constants.go): about 300,000 devices.
constexpr int kMostOfAnAnswer = 16 << 20;

// How often a pending call checks whether it is still worthwhile.
constexpr std::chrono::milliseconds kLook{50};

// One Register call. Another thread sets its status, or the call that starts or cancels it does: gRPC runs
// callbacks on any thread. So this class takes no lock but its own.
class Call {
 public:
  Call(const std::string& socket_path, v1beta1::RegisterRequest request,
       std::chrono::system_clock::time_point deadline)
      : stub_(v1beta1::Registration::NewStub(DialUnix(socket_path))), request_(std::move(request)) {
    context_.set_deadline(deadline);
  }
  void Start() {
    stub_->async()->Register(&context_, &request_, &response_,
                             [this](grpc::Status status) { Set(std::move(status)); });
  }
  void Cancel() { context_.TryCancel(); }
  bool Wait(std::chrono::milliseconds limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return status_.has_value(); });
  }
  grpc::Status Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return *std::move(status_);
  }

 private:
  void Set(grpc::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    changed_.notify_all();
  }

  const std::unique_ptr<v1beta1::Registration::Stub> stub_;
  const v1beta1::RegisterRequest request_;
  grpc::ClientContext context_;
  v1beta1::Empty response_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<grpc::Status> status_;
};

v1beta1::RegisterRequest RequestFor(const KubeletClient::Registration& registration) {
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(registration.endpoint);
  request.set_resource_name(registration.resource);
  request.mutable_options()->set_pre_start_required(registration.pre_start_required);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  return request;
}

Result<void> ResultOf(const grpc::Status& status, const std::string& resource,
                      const std::string& socket_path) {
  if (status.ok()) return {};
  const std::string attempt =
      "registering " + resource + " with kubelet at " + socket_path + ": " + status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return Fail(ErrorCode::kIo, attempt, "kubelet does not answer there; it is tried again until it does");
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
      return Fail(ErrorCode::kTimeout, attempt, "it is tried again");
    default:
      return Fail(ErrorCode::kConflict, attempt, "kubelet refused it; see kubelet's log");
  }
}

}  // namespace

class KubeletClient::Impl {
 public:
  explicit Impl(std::string socket_path) : socket_path_(std::move(socket_path)) {}

  std::vector<Result<void>> Register(const std::vector<Registration>& registrations,
                                     std::chrono::milliseconds limit) {
    Begin(registrations, std::chrono::system_clock::now() + limit);
    for (const auto& call : calls_) {
      while (!call->Wait(kLook)) GiveUp(registrations);
    }
    std::vector<Result<void>> results;
    results.reserve(registrations.size());
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 0; i < registrations.size(); ++i) {
      const grpc::Status status = i < calls_.size() ? calls_[i]->Take() : grpc::Status::CANCELLED;
      results.push_back(ResultOf(status, registrations[i].resource, socket_path_));
    }
    calls_.clear();
    return results;
  }

  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    for (const auto& call : calls_) call->Cancel();
  }

 private:
  void Begin(const std::vector<Registration>& registrations, std::chrono::system_clock::time_point deadline) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled_) return;
    for (const Registration& registration : registrations)
      calls_.push_back(std::make_unique<Call>(socket_path_, RequestFor(registration), deadline));
    for (const auto& call : calls_) call->Start();
  }

  void GiveUp(const std::vector<Registration>& registrations) {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (!registrations[i].worthwhile()) calls_[i]->Cancel();
    }
  }

  const std::string socket_path_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Call>> calls_;  // in progress; only Register() changes it
  bool cancelled_ = false;
};

KubeletClient::KubeletClient(std::string socket_path)
    : impl_(std::make_unique<Impl>(std::move(socket_path))) {}
KubeletClient::~KubeletClient() = default;

std::vector<Result<void>> KubeletClient::Register(const std::vector<Registration>& registrations,
                                                  std::chrono::milliseconds limit) {
  return impl_->Register(registrations, limit);
}

void KubeletClient::Cancel() {
  impl_->Cancel();
}

std::shared_ptr<grpc::Channel> DialUnix(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // A Go server refuses the encoded socket path that newer gRPC puts there.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  // Without a shared pool, a new channel does not inherit the old one's waiting time.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMostOfAnAnswer);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

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
    const std::lock_guard lock(mutex_);
    if (!channel_) channel_ = DialUnix(socket_path_);
    return channel_;
  }
  void Drop(const std::shared_ptr<grpc::Channel>& channel) {
    const std::lock_guard lock(mutex_);
    if (channel_ == channel) channel_.reset();
  }

  const std::string socket_path_;
  std::mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_;
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
