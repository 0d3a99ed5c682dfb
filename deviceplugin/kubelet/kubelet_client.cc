#include "deviceplugin/kubelet/kubelet_client.h"

#include <mutex>
#include <utility>

#include "deviceplugin/kubelet/dial.h"
#include "deviceplugin/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"

namespace railhead {

class KubeletClient::Impl {
 public:
  explicit Impl(std::string socket_path) : socket_path_(std::move(socket_path)) {}

  grpc::Status Call(const v1beta1::RegisterRequest& request, std::chrono::milliseconds limit) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (cancelled_) return grpc::Status::CANCELLED;
      context_ = &context;
    }
    v1beta1::Empty response;
    grpc::Status status =
        v1beta1::Registration::NewStub(DialUnix(socket_path_))->Register(&context, request, &response);
    const std::lock_guard<std::mutex> lock(mutex_);
    context_ = nullptr;
    return status;
  }

  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }

  [[nodiscard]] const std::string& socket_path() const { return socket_path_; }

 private:
  const std::string socket_path_;
  std::mutex mutex_;
  grpc::ClientContext* context_ = nullptr;  // of the call in progress
  bool cancelled_ = false;
};

KubeletClient::KubeletClient(std::string socket_path)
    : impl_(std::make_unique<Impl>(std::move(socket_path))) {}
KubeletClient::~KubeletClient() = default;

Result<void> KubeletClient::Register(const std::string& resource, const std::string& endpoint,
                                     bool pre_start_required, std::chrono::milliseconds limit) {
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(endpoint);
  request.set_resource_name(resource);
  request.mutable_options()->set_pre_start_required(pre_start_required);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  const grpc::Status status = impl_->Call(request, limit);
  if (status.ok()) return {};
  const std::string attempt =
      "registering " + resource + " with kubelet at " + impl_->socket_path() + ": " + status.error_message();
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

void KubeletClient::Cancel() {
  impl_->Cancel();
}

}  // namespace railhead
