// kubelet's requests as gRPC hands them on. The first byte says which call of which pool, the
// rest is the serialized message.
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/kubelet/handlers.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

// In memory, since each allocation is written with fsync.
const Root& Node() {
  static const Root root(ScratchDirectory());
  return root;
}

resources::ResourcePool MakePool(bool late) {
  resources::ResourcePool pool;
  pool.spec.resource = late ? "a.io/late" : "a.io/early";
  pool.spec.late = late;
  pool.spec.nccl_config = NcclConfigPolicy::kRequired;
  pool.spec.device_nodes = DeviceNodeMode::kCdi;
  for (int i = 0; i < 6; ++i) {
    resources::PoolMember member;
    member.function.id = (late ? "slot-" : "vf-") + std::to_string(i);
    member.function.is_vf = true;
    member.function.vf_index = i / 2;
    member.rail = i % 2;
    pool.members.push_back(member);
  }
  return pool;
}

void CheckRefusal(const Error& error) {
  Require(!error.message.empty(), "a refusal says why");
  Require(Describe(error).size() <= kubelet::kLongestMessage, "a refusal fits into a header");
}

template <typename Message>
bool Parse(std::string_view bytes, Message* message) {
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void Allocate(const resources::ResourcePool& pool, std::string_view bytes) {
  v1beta1::AllocateRequest request;
  if (!Parse(bytes, &request)) return;
  resources::Allocator allocator{Node()};
  v1beta1::AllocateResponse response;
  int reports = 0;
  const auto report = [&](const kubelet::ContainerCall& call) {
    ++reports;
    Require(call.device_ids.size() <= 65, "a report is short");
  };
  const auto done = kubelet::AnswerAllocate(pool, &allocator, request, report, &response);
  Require(reports > 0, "every call is reported");
  if (!done) return CheckRefusal(done.error());
  Require(response.container_responses_size() == request.container_requests_size(),
          "each container has an answer");
  for (int i = 0; i < request.container_requests_size(); ++i) {
    Require(
        response.container_responses(i).cdi_devices_size() == request.container_requests(i).device_ids_size(),
        "each device has a CDI name");
    for (const std::string& id : request.container_requests(i).device_ids())
      Require(pool.Find(id) != nullptr, "only the pool's devices are given");
  }
}

void Prefer(const resources::ResourcePool& pool, std::string_view bytes) {
  v1beta1::PreferredAllocationRequest request;
  if (!Parse(bytes, &request)) return;
  v1beta1::PreferredAllocationResponse response;
  resources::PreferHints hints;
  hints.still_attached = {"vf-0", "slot-3"};
  const auto done = kubelet::AnswerPreferred(pool, hints, request, &response);
  if (!done) return CheckRefusal(done.error());
  Require(response.container_responses_size() == request.container_requests_size(),
          "each container has an answer");
  for (int i = 0; i < request.container_requests_size(); ++i) {
    const auto& asked = request.container_requests(i);
    const auto& answer = response.container_responses(i).device_ids();
    const std::set<std::string> chosen(answer.begin(), answer.end());
    const std::set<std::string> available(asked.available_device_ids().begin(),
                                          asked.available_device_ids().end());
    Require(static_cast<int>(chosen.size()) == answer.size(), "no device is preferred twice");
    Require(answer.size() == asked.allocation_size(), "as many are preferred as were asked for");
    for (const std::string& id : chosen) Require(available.contains(id), "what is preferred is available");
    for (const std::string& id : asked.must_include_device_ids())
      Require(chosen.contains(id), "what must be included is");
  }
}

void PreStart(const resources::ResourcePool& pool, std::string_view bytes) {
  v1beta1::PreStartContainerRequest request;
  if (!Parse(bytes, &request)) return;
  const auto report = [](const kubelet::ContainerCall&) {};
  const auto done = kubelet::AnswerPreStart(Node(), pool, request, report, std::chrono::milliseconds(0));
  Require(!done, "nothing is attached here");
  CheckRefusal(done.error());
}

void Read(std::string_view bytes) {
  static const resources::ResourcePool pools[] = {MakePool(false), MakePool(true)};
  if (bytes.empty()) return;
  const auto first = static_cast<unsigned char>(bytes.front());
  const resources::ResourcePool& pool = pools[first % 2];
  bytes.remove_prefix(1);
  switch (first / 2 % 3) {
    case 0:
      return Allocate(pool, bytes);
    case 1:
      return Prefer(pool, bytes);
    default:
      return PreStart(pool, bytes);
  }
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::fuzz::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
