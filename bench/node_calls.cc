#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <tuple>

#include "bench/node.h"
#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"

namespace railhead::bench {
namespace {

constexpr std::chrono::seconds kLimit{10};

using Plugin = v1beta1::DevicePlugin::Stub;

// From before the call until the answer is there.
template <typename Request, typename Response>
Result<double> Timed(Plugin* plugin,
                     grpc::Status (Plugin::*call)(grpc::ClientContext*, const Request&, Response*),
                     const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  Response response;
  const auto start = std::chrono::steady_clock::now();
  const auto status = (plugin->*call)(&context, request, &response);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (status.ok()) return took.count();
  return Fail(ErrorCode::kConflict, "railheadd answers: " + status.error_message());
}

v1beta1::PreferredAllocationRequest Preference(const std::vector<std::string>& ids, int size, int must) {
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_available_device_ids(id);
  for (int i = 0; i < must; ++i) container->add_must_include_device_ids(ids[static_cast<std::size_t>(i)]);
  container->set_allocation_size(size);
  return request;
}

}  // namespace

Result<void> MeasureCalls(const std::string& socket, std::vector<std::string> ids, const NodeRounds& rounds,
                          Samples* samples) {
  const auto plugin = v1beta1::DevicePlugin::NewStub(
      grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
  std::mt19937 random(23);  // NOLINT(cert-msc32-c,cert-msc51-cpp): each run alike
  for (int i = 0; i < rounds.preferences; ++i) {
    std::shuffle(ids.begin(), ids.end(), random);
    for (const auto& [what, size, must] : {std::tuple("prefer 1", 1, 0), std::tuple("prefer 8", 8, 0),
                                           std::tuple("prefer 8, 3 given", 8, 3)}) {
      const double us =
          RH_TRY(Timed(plugin.get(), &Plugin::GetPreferredAllocation, Preference(ids, size, must)));
      samples->Add("node", "over gRPC", what, "us", us);
    }
  }
  for (int i = 0; i < rounds.allocations; ++i) {
    v1beta1::AllocateRequest request;
    request.add_container_requests()->add_device_ids(ids[random() % ids.size()]);
    samples->Add("node", "over gRPC", "Allocate 1", "us",
                 RH_TRY(Timed(plugin.get(), &Plugin::Allocate, request)));
  }
  return {};
}

}  // namespace railhead::bench
