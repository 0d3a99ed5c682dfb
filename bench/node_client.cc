#include "bench/node_client.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <chrono>

#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"

namespace railhead::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{10};

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Result<double> Answered(const char* call, const grpc::Status& status, double us) {
  if (status.ok()) return us;
  return Fail(ErrorCode::kConflict, std::string(call) + ": " + status.error_message());
}

}  // namespace

class NodeClient::Impl {
 public:
  explicit Impl(const std::string& path)
      : stub_(v1beta1::DevicePlugin::NewStub(
            grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()))) {}

  Result<double> Call(const v1beta1::PreferredAllocationRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1beta1::PreferredAllocationResponse response;
    const auto start = Clock::now();
    const auto status = stub_->GetPreferredAllocation(&context, request, &response);
    return Answered("GetPreferredAllocation", status, MicrosecondsSince(start));
  }

  Result<double> Call(const v1beta1::AllocateRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1beta1::AllocateResponse response;
    const auto start = Clock::now();
    const auto status = stub_->Allocate(&context, request, &response);
    return Answered("Allocate", status, MicrosecondsSince(start));
  }

 private:
  const std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
};

NodeClient::NodeClient(const std::string& socket_path) : impl_(std::make_unique<Impl>(socket_path)) {}
NodeClient::~NodeClient() = default;

Result<double> NodeClient::Prefer(const std::vector<std::string>& available,
                                  const std::vector<std::string>& must, int size) {
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : available) container->add_available_device_ids(id);
  for (const std::string& id : must) container->add_must_include_device_ids(id);
  container->set_allocation_size(size);
  return impl_->Call(request);
}

Result<double> NodeClient::Allocate(const std::vector<std::string>& ids) {
  v1beta1::AllocateRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_device_ids(id);
  return impl_->Call(request);
}

}  // namespace railhead::bench
