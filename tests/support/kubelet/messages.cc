#include "tests/support/kubelet/messages.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

template <typename Ids>
Json List(const Ids& ids) {
  Json list = Json::array();
  for (const auto& id : ids) list.push_back(id);
  return list;
}

Json ToJson(const v1beta1::Device& device) {
  Json object{{"ID", device.id()}, {"health", device.health()}};
  if (!device.has_topology()) return object;
  Json nodes = Json::array();
  // 64-bit numbers are text in proto3 JSON.
  for (const auto& node : device.topology().nodes()) nodes.push_back({{"ID", std::to_string(node.id())}});
  object["topology"] = {{"nodes", std::move(nodes)}};
  return object;
}

Json ToJson(const v1beta1::ContainerAllocateResponse& message) {
  Json object = Json::object();
  for (const auto& [name, value] : message.envs()) object["envs"][name] = value;
  for (const auto& [name, value] : message.annotations()) object["annotations"][name] = value;
  for (const auto& mount : message.mounts()) {
    object["mounts"].push_back({{"containerPath", mount.container_path()},
                                {"hostPath", mount.host_path()},
                                {"readOnly", mount.read_only()}});
  }
  for (const auto& device : message.devices()) {
    object["devices"].push_back({{"containerPath", device.container_path()},
                                 {"hostPath", device.host_path()},
                                 {"permissions", device.permissions()}});
  }
  for (const auto& device : message.cdi_devices()) object["cdiDevices"].push_back({{"name", device.name()}});
  return object;
}

}  // namespace

Json ToJson(const v1beta1::DevicePluginOptions& message) {
  return {{"preStartRequired", message.pre_start_required()},
          {"getPreferredAllocationAvailable", message.get_preferred_allocation_available()}};
}

Json ToJson(const v1beta1::RegisterRequest& message) {
  return {{"version", message.version()},
          {"endpoint", "E"},  // every process chooses a new one
          {"resourceName", message.resource_name()},
          {"options", ToJson(message.options())}};
}

Json ToJson(const v1beta1::ListAndWatchResponse& message) {
  Json devices = Json::array();
  for (const auto& device : message.devices()) devices.push_back(ToJson(device));
  return {{"devices", std::move(devices)}};
}

Json ToJson(const v1beta1::PreferredAllocationRequest& message) {
  Json containers = Json::array();
  for (const auto& container : message.container_requests()) {
    containers.push_back({{"availableDeviceIDs", List(container.available_device_ids())},
                          {"mustIncludeDeviceIDs", List(container.must_include_device_ids())},
                          {"allocationSize", container.allocation_size()}});
  }
  return {{"containerRequests", std::move(containers)}};
}

Json ToJson(const v1beta1::PreferredAllocationResponse& message) {
  Json containers = Json::array();
  for (const auto& container : message.container_responses())
    containers.push_back({{"deviceIDs", List(container.device_ids())}});
  return {{"containerResponses", std::move(containers)}};
}

Json ToJson(const v1beta1::AllocateRequest& message) {
  Json containers = Json::array();
  for (const auto& container : message.container_requests())
    containers.push_back({{"devicesIds", List(container.device_ids())}});
  return {{"containerRequests", std::move(containers)}};
}

Json ToJson(const v1beta1::AllocateResponse& message) {
  Json containers = Json::array();
  for (const auto& container : message.container_responses()) containers.push_back(ToJson(container));
  return {{"containerResponses", std::move(containers)}};
}

Json ToJson(const v1beta1::PreStartContainerRequest& message) {
  return {{"devicesIds", List(message.device_ids())}};
}

std::vector<SeenDevice> Seen(const v1beta1::ListAndWatchResponse& message) {
  std::vector<SeenDevice> devices;
  devices.reserve(static_cast<std::size_t>(message.devices_size()));
  for (const auto& device : message.devices()) {
    SeenDevice seen{device.id(), device.health() == "Healthy", {}};
    for (const auto& node : device.topology().nodes()) seen.numa_nodes.push_back(static_cast<int>(node.id()));
    devices.push_back(std::move(seen));
  }
  return devices;
}

SeenAllocation Seen(const v1beta1::ContainerAllocateResponse& message) {
  SeenAllocation seen;
  seen.envs = {message.envs().begin(), message.envs().end()};
  for (const auto& mount : message.mounts()) {
    seen.mounts.push_back({mount.container_path(), mount.host_path(), mount.read_only()});
  }
  for (const auto& device : message.devices()) {
    seen.devices.push_back({device.container_path(), device.host_path(), device.permissions()});
  }
  seen.annotations = {message.annotations().begin(), message.annotations().end()};
  for (const auto& device : message.cdi_devices()) seen.cdi_devices.push_back(device.name());
  seen.message = message.SerializeAsString();
  return seen;
}

std::optional<TraceError> TraceErrorOf(const grpc::Status& status) {
  if (status.ok()) return std::nullopt;
  return TraceError{static_cast<int>(status.error_code()), status.error_message()};
}

}  // namespace railhead::testing
