// Messages of the device plugin API as JSON (proto3 JSON, names of kubelet's api.proto) and as the stand-in's
// types. Only for the stand-in's own files, since it includes gRPC.
// Threads: pure functions.
#pragma once

#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"
#include "tests/support/kubelet/seen.h"
#include "tests/support/kubelet/trace.h"

namespace railhead::testing {

nlohmann::json ToJson(const v1beta1::DevicePluginOptions& message);
nlohmann::json ToJson(const v1beta1::RegisterRequest& message);
nlohmann::json ToJson(const v1beta1::ListAndWatchResponse& message);
nlohmann::json ToJson(const v1beta1::PreferredAllocationRequest& message);
nlohmann::json ToJson(const v1beta1::PreferredAllocationResponse& message);
nlohmann::json ToJson(const v1beta1::AllocateRequest& message);
nlohmann::json ToJson(const v1beta1::AllocateResponse& message);
nlohmann::json ToJson(const v1beta1::PreStartContainerRequest& message);

std::vector<SeenDevice> Seen(const v1beta1::ListAndWatchResponse& message);
// Without ids.
SeenAllocation Seen(const v1beta1::ContainerAllocateResponse& message);

// nullopt: OK.
std::optional<TraceError> TraceErrorOf(const grpc::Status& status);

}  // namespace railhead::testing
