#include "deviceplugin/kubelet/kubelet_client.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "deviceplugin/kubelet/dial.h"
#include "deviceplugin/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"

namespace railhead {
namespace {

// How soon a call is given up that is not worthwhile any more.
constexpr std::chrono::milliseconds kLook{50};

// A status that comes from another thread, or from within the call that starts or cancels it:
// gRPC runs callbacks where it likes, so no other lock is taken here.
class Pending {
 public:
  void Set(grpc::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    changed_.notify_all();
  }
  bool Wait(std::chrono::milliseconds limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return status_.has_value(); });
  }
  grpc::Status Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return *std::move(status_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<grpc::Status> status_;
};

}  // namespace

class KubeletClient::Impl {
 public:
  explicit Impl(std::string socket_path) : socket_path_(std::move(socket_path)) {}

  grpc::Status Call(const v1beta1::RegisterRequest& request, std::chrono::milliseconds limit,
                    const std::function<bool()>& worthwhile) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    const auto stub = v1beta1::Registration::NewStub(DialUnix(socket_path_));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (cancelled_) return grpc::Status::CANCELLED;
      context_ = &context;
    }
    v1beta1::Empty response;
    Pending pending;
    stub->async()->Register(&context, &request, &response,
                            [&pending](grpc::Status status) { pending.Set(std::move(status)); });
    while (!pending.Wait(kLook)) {
      if (!worthwhile()) context.TryCancel();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    context_ = nullptr;
    return pending.Take();
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
                                     bool pre_start_required, std::chrono::milliseconds limit,
                                     const std::function<bool()>& worthwhile) {
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(endpoint);
  request.set_resource_name(resource);
  request.mutable_options()->set_pre_start_required(pre_start_required);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  const grpc::Status status = impl_->Call(request, limit, worthwhile);
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
