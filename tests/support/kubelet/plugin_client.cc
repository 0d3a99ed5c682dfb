#include "tests/support/kubelet/plugin_client.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <utility>

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr seconds kDialLimit{10};
constexpr seconds kPreStartLimit{30};
constexpr seconds kCallLimit{60};  // kubelet has no limit here, but a test must end
constexpr milliseconds kLook{20};  // how soon a Cancel() is noticed while dialling

Error StatusError(const std::string& what, const grpc::Status& status) {
  static constexpr const char* kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto code = static_cast<std::size_t>(status.error_code());
  const std::string name = code < std::size(kNames) ? kNames[code] : std::to_string(code);
  return {ErrorCode::kConflict, what + ": " + name + ": " + status.error_message(), "", 0};
}

}  // namespace

PluginClient::PluginClient(std::string resource, std::string socket_path, Record record)
    : resource_(std::move(resource)), socket_path_(std::move(socket_path)), record_(std::move(record)) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel("unix:" + socket_path_, grpc::InsecureChannelCredentials(), arguments);
  stub_ = v1beta1::DevicePlugin::NewStub(channel_);
}

PluginClient::~PluginClient() {
  Cancel();
  Join();
}

grpc::Status PluginClient::Connect() {
  const auto deadline = std::chrono::system_clock::now() + kDialLimit;
  while (!channel_->WaitForConnected(std::min(deadline, std::chrono::system_clock::now() + kLook))) {
    if (cancelled_ || std::chrono::system_clock::now() >= deadline) {
      return {grpc::StatusCode::UNKNOWN, "failed to dial device plugin: context deadline exceeded"};
    }
  }
  grpc::Status status = Call(kCallLimit, [&](grpc::ClientContext* context) {
    return stub_->GetDevicePluginOptions(context, {}, &options_);
  });
  Note("kubelet", "GetDevicePluginOptions", nlohmann::json::object(), ToJson(options_), status);
  if (status.ok()) return status;
  return {grpc::StatusCode::UNKNOWN, "failed to get device plugin options: " + status.error_message()};
}

void PluginClient::Run(milliseconds delay, bool deaf, std::function<void(std::vector<SeenDevice>)> on_list,
                       std::function<void()> on_end) {
  thread_ = std::thread([this, delay, deaf, on_list = std::move(on_list), on_end = std::move(on_end)] {
    if (Await(delay)) Stream(deaf, on_list);
    on_end();
  });
}

void PluginClient::Stream(bool deaf, const std::function<void(std::vector<SeenDevice>)>& on_list) {
  const grpc::Status status = Call(seconds(3600), [&](grpc::ClientContext* context) {
    Note("kubelet", "ListAndWatch", nlohmann::json::object(), nullptr, {});
    const auto stream = stub_->ListAndWatch(context, {});
    while (deaf && !cancelled_) std::this_thread::sleep_for(kLook);
    v1beta1::ListAndWatchResponse message;
    while (stream->Read(&message)) {
      Note("plugin", "ListAndWatch", nullptr, ToJson(message), {});
      on_list(Seen(message));
    }
    return stream->Finish();
  });
  Note(cancelled_ ? "kubelet" : "plugin", "StreamEnd", nullptr, nullptr,
       cancelled_ ? grpc::Status() : status);
}

void PluginClient::Cancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
}

void PluginClient::Join() {
  if (thread_.joinable()) thread_.join();
}

Result<std::vector<std::string>> PluginClient::Prefer(const std::vector<std::string>& available,
                                                      const std::vector<std::string>& must_include,
                                                      std::size_t size) {
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : available) container->add_available_device_ids(id);
  for (const std::string& id : must_include) container->add_must_include_device_ids(id);
  container->set_allocation_size(static_cast<int>(size));
  v1beta1::PreferredAllocationResponse response;
  const grpc::Status status = Call(kCallLimit, [&](grpc::ClientContext* context) {
    return stub_->GetPreferredAllocation(context, request, &response);
  });
  Note("kubelet", "GetPreferredAllocation", ToJson(request), ToJson(response), status);
  if (!status.ok()) return Fail(StatusError("GetPreferredAllocation", status));
  if (response.container_responses_size() == 0) return std::vector<std::string>{};
  const auto& ids = response.container_responses(0).device_ids();
  return std::vector<std::string>(ids.begin(), ids.end());
}

Result<SeenAllocation> PluginClient::Allocate(const std::vector<std::string>& ids) {
  v1beta1::AllocateRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_device_ids(id);
  v1beta1::AllocateResponse response;
  const grpc::Status status = Call(
      kCallLimit, [&](grpc::ClientContext* context) { return stub_->Allocate(context, request, &response); });
  Note("kubelet", "Allocate", ToJson(request), ToJson(response), status);
  if (!status.ok()) return Fail(StatusError("Allocate of " + resource_, status));
  if (response.container_responses_size() != 1) {
    return Fail(ErrorCode::kConflict,
                "Allocate of " + resource_ + ": no containers return in allocation response");
  }
  SeenAllocation seen = Seen(response.container_responses(0));
  seen.ids = ids;
  std::sort(seen.ids.begin(), seen.ids.end());
  return seen;
}

Result<void> PluginClient::PreStart(const std::vector<std::string>& ids) {
  v1beta1::PreStartContainerRequest request;
  for (const std::string& id : ids) request.add_device_ids(id);
  v1beta1::PreStartContainerResponse response;
  const grpc::Status status = Call(kPreStartLimit, [&](grpc::ClientContext* context) {
    return stub_->PreStartContainer(context, request, &response);
  });
  Note("kubelet", "PreStartContainer", ToJson(request), nlohmann::json::object(), status);
  if (!status.ok()) return Fail(StatusError("PreStartContainer of " + resource_, status));
  return {};
}

grpc::Status PluginClient::Call(seconds limit,
                                const std::function<grpc::Status(grpc::ClientContext*)>& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + limit);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled_) return {grpc::StatusCode::CANCELLED, "endpoint has been stopped"};
    contexts_.insert(&context);
  }
  grpc::Status status = call(&context);
  const std::lock_guard<std::mutex> lock(mutex_);
  contexts_.erase(&context);
  return status;
}

void PluginClient::Note(const char* from, const char* call, nlohmann::json request, nlohmann::json response,
                        const grpc::Status& status) const {
  if (!record_) return;
  if (!status.ok()) response = nullptr;
  record_({from, call, resource_, 1, std::move(request), std::move(response), TraceErrorOf(status)});
}

bool PluginClient::Await(milliseconds delay) const {
  const auto until = std::chrono::steady_clock::now() + delay;
  while (!cancelled_ && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kLook);
  return !cancelled_;
}

}  // namespace railhead::testing
