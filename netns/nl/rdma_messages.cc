#include "netns/nl/rdma_messages.h"

#include <rdma/rdma_netlink.h>

#include <array>

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

std::span<const RdmaResourceKind> RdmaResourceKinds() {
  // Contexts come with every use of an uverbs node (Linux 5.11); the others are for kernels before.
  static constexpr std::array<RdmaResourceKind, 6> kKinds = {
      {{"context", RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX},
       {"PD", RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD},
       {"CQ", RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ},
       {"QP", RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP},
       {"MR", RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR},
       {"CM ID", RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID}}};
  return kKinds;
}

Message DumpRdmaResourcesMessage(const RdmaResourceKind& kind, std::uint32_t device_index) {
  Message message(Type(kind.command), 0);
  message.PutU32(RDMA_NLDEV_ATTR_DEV_INDEX, device_index);
  return message;
}

std::vector<std::uint32_t> ParseRdmaOwners(const RdmaResourceKind& kind, const Received& received) {
  std::vector<std::uint32_t> owners;
  const auto take_entry = [&](int /*type*/, BytesView entry) {
    std::uint32_t pid = 0;
    bool of_kernel = false;
    ForEachAttribute(entry, [&](int type, BytesView payload) {
      if (type == RDMA_NLDEV_ATTR_RES_PID) Store(pid, ReadStruct<std::uint32_t>(payload));
      of_kernel = of_kernel || type == RDMA_NLDEV_ATTR_RES_KERN_NAME;
    });
    if (!of_kernel) owners.push_back(pid);
  };
  ForEachAttribute(received.payload, [&](int type, BytesView table) {
    if (type == kind.table) ForEachAttribute(table, take_entry);
  });
  return owners;
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
