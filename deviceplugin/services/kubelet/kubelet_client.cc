#include "deviceplugin/services/kubelet/kubelet_client.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <optional>
#include <utility>

#include "deviceplugin/services/kubelet/dial_unix.h"
#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"
#include "netns/base/mutex.h"

namespace railhead::kubelet {
namespace {

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
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, limit, [&]() RH_REQUIRES(mutex_) { return status_.has_value(); });
  }
  grpc::Status Take() {
    const MutexLock lock(mutex_);
    return *std::move(status_);
  }

 private:
  void Set(grpc::Status status) {
    const MutexLock lock(mutex_);
    status_ = std::move(status);
    changed_.notify_all();
  }

  const std::unique_ptr<v1beta1::Registration::Stub> stub_;
  const v1beta1::RegisterRequest request_;
  grpc::ClientContext context_;
  v1beta1::Empty response_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<grpc::Status> status_ RH_GUARDED_BY(mutex_);
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
    const std::vector<Call*> calls = Begin(registrations, std::chrono::system_clock::now() + limit);
    for (Call* call : calls) {
      while (!call->Wait(kLook)) GiveUp(registrations, calls);
    }
    std::vector<Result<void>> results;
    results.reserve(registrations.size());
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < registrations.size(); ++i) {
      const grpc::Status status = i < calls.size() ? calls[i]->Take() : grpc::Status::CANCELLED;
      results.push_back(ResultOf(status, registrations[i].resource, socket_path_));
    }
    calls_.clear();
    return results;
  }

  void Cancel() {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    for (const auto& call : calls_) call->Cancel();
  }

 private:
  // Only Register() adds calls and drops them.
  std::vector<Call*> Begin(const std::vector<Registration>& registrations,
                           std::chrono::system_clock::time_point deadline) {
    std::vector<Call*> calls;
    const MutexLock lock(mutex_);
    if (cancelled_) return calls;
    for (const Registration& registration : registrations) {
      calls_.push_back(std::make_unique<Call>(socket_path_, RequestFor(registration), deadline));
      calls.push_back(calls_.back().get());
    }
    for (Call* call : calls) call->Start();
    return calls;
  }

  static void GiveUp(const std::vector<Registration>& registrations, const std::vector<Call*>& calls) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!registrations[i].worthwhile()) calls[i]->Cancel();
    }
  }

  const std::string socket_path_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Call>> calls_ RH_GUARDED_BY(mutex_);  // in progress
  bool cancelled_ RH_GUARDED_BY(mutex_) = false;
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

}  // namespace railhead::kubelet
