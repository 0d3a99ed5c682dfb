#include "netns/nl/rdma_messages.h"

#include <rdma/rdma_netlink.h>

namespace railhead::nl {
namespace {

// enum ib_port_state of include/rdma/ib_verbs.h, which is not in uapi.
constexpr std::uint8_t kPortActive = 4;

constexpr std::uint16_t Type(std::uint16_t command) {
  return static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
}

}  // namespace

Message GetNetnsModeMessage() {
  return {Type(RDMA_NLDEV_CMD_SYS_GET), 0};
}

Message DumpRdmaDevicesMessage() {
  return {Type(RDMA_NLDEV_CMD_GET), 0};
}

Message GetRdmaPortMessage(std::uint32_t device_index, std::uint32_t port) {
  Message message(Type(RDMA_NLDEV_CMD_PORT_GET), 0);
  message.PutU32(RDMA_NLDEV_ATTR_DEV_INDEX, device_index);
  message.PutU32(RDMA_NLDEV_ATTR_PORT_INDEX, port);
  return message;
}

Message MoveRdmaDeviceMessage(std::uint32_t device_index, int target_fd) {
  Message message(Type(RDMA_NLDEV_CMD_SET), 0);
  message.PutU32(RDMA_NLDEV_ATTR_DEV_INDEX, device_index);
  message.PutU32(RDMA_NLDEV_NET_NS_FD, static_cast<std::uint32_t>(target_fd));
  return message;
}

Message AddRxeMessage(const std::string& name, const std::string& netdev) {
  Message message(Type(RDMA_NLDEV_CMD_NEWLINK), 0);
  message.PutString(RDMA_NLDEV_ATTR_DEV_NAME, name);
  message.PutString(RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
  message.PutString(RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
  return message;
}

Message DeleteRdmaLinkMessage(std::uint32_t device_index) {
  Message message(Type(RDMA_NLDEV_CMD_DELLINK), 0);
  message.PutU32(RDMA_NLDEV_ATTR_DEV_INDEX, device_index);
  return message;
}

RdmaNetnsMode ParseNetnsMode(const Received& received) {
  std::uint8_t shared = 1;
  ForEachAttribute(received.payload, [&](int type, BytesView payload) {
    if (type == RDMA_NLDEV_SYS_ATTR_NETNS_MODE) Store(shared, ReadStruct<std::uint8_t>(payload));
  });
  return shared == 0 ? RdmaNetnsMode::kExclusive : RdmaNetnsMode::kShared;
}

std::optional<RdmaDevice> ParseRdmaDevice(const Received& received) {
  RdmaDevice device;
  std::optional<std::uint32_t> index;
  ForEachAttribute(received.payload, [&](int type, BytesView payload) {
    if (type == RDMA_NLDEV_ATTR_DEV_INDEX) index = ReadStruct<std::uint32_t>(payload);
    if (type == RDMA_NLDEV_ATTR_DEV_NAME) device.name = ReadString(payload);
  });
  if (!index || device.name.empty()) return std::nullopt;
  device.index = *index;
  return device;
}

void ParseRdmaPort(const Received& received, RdmaDevice& device) {
  ForEachAttribute(received.payload, [&](int type, BytesView payload) {
    if (type == RDMA_NLDEV_ATTR_NDEV_INDEX) Store(device.netdev_index, ReadStruct<std::uint32_t>(payload));
    if (type == RDMA_NLDEV_ATTR_NDEV_NAME) device.netdev = ReadString(payload);
    if (type == RDMA_NLDEV_ATTR_PORT_STATE) {
      device.active = ReadStruct<std::uint8_t>(payload).value_or(0) == kPortActive;
    }
  });
}

}  // namespace railhead::nl
