#include "deviceplugin/node/inventory/netdev_facts.h"

#include <cstdint>
#include <optional>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::inventory {
namespace {

constexpr const char* kInfiniBand = "infiniband";

Result<std::string> LinkTypeOfPort(const Root& root, const std::string& ibdev) {
  switch (RH_TRY(LinkLayerOf(root, ibdev, 1)).value_or(LinkLayer::kUnknown)) {
    case LinkLayer::kEthernet:
      return std::string("ether");
    case LinkLayer::kInfiniband:
      return std::string(kInfiniBand);
    case LinkLayer::kUnknown:
      break;
  }
  return std::string();
}

// Port 1, index 0: "0xffff" (Documentation/ABI/stable/sysfs-class-infiniband).
Result<std::optional<std::uint16_t>> DefaultPkey(const Root& root, const std::string& ibdev) {
  const auto text = RH_TRY(ReadAttribute(root.Path("/sys/class/infiniband/") + ibdev + "/ports/1/pkeys/0"));
  if (!text || text->rfind("0x", 0) != 0) return std::nullopt;
  const auto value = ParseHex(text->substr(2));
  if (!value || *value > 0xffff) return std::nullopt;
  return static_cast<std::uint16_t>(*value);
}

}  // namespace

Result<HostCarriers> FindHostCarriers(const Root& root, const HostNetwork& host) {
  HostCarriers carriers;
  const auto use_of = [](const auto& netdev) {
    return std::string(netdev.second).append(" (").append(netdev.first).append(")");
  };
  for (const auto& netdev : host.netdevs) carriers.emplace(netdev.first, use_of(netdev));
  for (const auto& netdev : host.netdevs) {
    for (const std::string& lower : RH_TRY(LowerDevicesOf(root, netdev.first)))
      carriers.emplace(lower, use_of(netdev));
  }
  return carriers;
}

Result<void> ReadNetdevFacts(const Root& root, const HostCarriers& host,
                             const std::vector<std::string>& netdevs, NicFunction* function) {
  if (netdevs.empty()) return {};
  const auto type = RH_TRY(HardwareTypeOf(root, netdevs.front()));
  if (type) function->link_type = HardwareTypeName(*type);
  for (const std::string& netdev : netdevs) {
    const auto carries = host.find(netdev);
    if (carries == host.end()) continue;
    function->host_use = carries->second;
    break;
  }
  return {};
}

Result<void> ReadRdmaFacts(const Root& root, const std::vector<std::string>& rdma_devices,
                           NicFunction* function) {
  function->is_rdma = !rdma_devices.empty();
  if (rdma_devices.empty()) return {};
  function->rdma_device = rdma_devices.front();
  if (function->link_type.empty()) {
    function->link_type = RH_TRY(LinkTypeOfPort(root, function->rdma_device));
  }
  if (function->link_type == kInfiniBand) {
    function->pkey = RH_TRY(DefaultPkey(root, function->rdma_device));
  }
  return {};
}

}  // namespace railhead::inventory
