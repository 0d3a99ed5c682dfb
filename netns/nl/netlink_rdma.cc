#include "netns/nl/netlink_rdma.h"

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include "netns/nl/attributes.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead {
namespace {

Error WithRxeReason(Error error, const std::string& name, const std::string& netdev) {
  switch (error.sys_errno) {
    case EINVAL:
    case EOPNOTSUPP:
      // nldev_newlink answers EINVAL when no module offers links of type "rxe".
      error.code = ErrorCode::kUnsupported;
      error.hint = "is soft RoCE available? modprobe rdma_rxe";
      break;
    case ENFILE:
      // Linux 7.x: the name exists in another network namespace.
      error.code = ErrorCode::kExists;
      error.hint = "RDMA device names are node-wide and " + name + " is taken: rdma link show";
      break;
    case EEXIST:
      error.hint = name + " exists or " + netdev + " has a soft RoCE device already: rdma link show";
      break;
    case ENODEV:
      error.hint = "no interface " + netdev + " exists in that namespace";
      break;
    default:
      break;
  }
  return error;
}

class NetlinkRdma final : public RdmaApi {
 public:
  explicit NetlinkRdma(nl::Socket socket) : socket_(std::move(socket)) {}

  Result<RdmaNetnsMode> NetnsMode() override;
  Result<std::vector<RdmaDevice>> ListDevices() override;
  Result<void> MoveDevice(const std::string& name, const NetNs& target) override;
  Result<void> AddRxe(const std::string& name, const std::string& netdev) override;
  Result<bool> DeleteRxe(const std::string& name) override;
  Result<std::vector<RdmaUser>> ListUsers(const std::string& name) override;

 private:
  Result<std::vector<RdmaDevice>> DumpDevices();
  Result<std::optional<std::uint32_t>> FindIndex(const std::string& name);

  nl::Socket socket_;
};

Result<RdmaNetnsMode> NetlinkRdma::NetnsMode() {
  nl::Message message = nl::GetNetnsModeMessage();
  RdmaNetnsMode mode = RdmaNetnsMode::kShared;
  RH_TRY_WRAP(
      socket_.Get(message, [&](const nl::Received& received) { mode = nl::ParseNetnsMode(received); }),
      "reading the RDMA netns mode");
  return mode;
}

Result<std::vector<RdmaDevice>> NetlinkRdma::DumpDevices() {
  nl::Message message = nl::DumpRdmaDevicesMessage();
  return RH_TRY_WRAP(socket_.Dump<RdmaDevice>(message, nl::ParseRdmaDevice), "listing RDMA devices");
}

Result<std::vector<RdmaDevice>> NetlinkRdma::ListDevices() {
  std::vector<RdmaDevice> present;
  for (RdmaDevice& device : RH_TRY(DumpDevices())) {
    nl::Message message = nl::GetRdmaPortMessage(device.index, 1);
    auto got =
        socket_.Get(message, [&](const nl::Received& received) { nl::ParseRdmaPort(received, device); });
    // Gone since the list was made. (EINVAL: it is there, without a port 1.)
    if (!got && (got.error().sys_errno == ENODEV || got.error().sys_errno == ENOENT)) continue;
    if (!got && got.error().sys_errno != EINVAL) {
      return Fail(Wrap(std::move(got.error()), "reading port 1 of RDMA device " + device.name));
    }
    present.push_back(std::move(device));
  }
  return present;
}

Result<std::optional<std::uint32_t>> NetlinkRdma::FindIndex(const std::string& name) {
  for (const RdmaDevice& device : RH_TRY(DumpDevices())) {
    if (device.name == name) return device.index;
  }
  return std::nullopt;
}

Result<void> NetlinkRdma::MoveDevice(const std::string& name, const NetNs& target) {
  const std::string what = "moving RDMA device " + name + " to " + target.path();
  const auto index = RH_TRY_WRAP(FindIndex(name), what);
  if (!index) return Fail(ErrorCode::kNotFound, what + ": the device does not exist in this namespace");
  nl::Message message = nl::MoveRdmaDeviceMessage(*index, target.fd());
  auto done = socket_.Request(message);
  if (done) return done;
  Error error = Wrap(std::move(done.error()), what);
  if (error.sys_errno == EOPNOTSUPP || error.sys_errno == EPERM) {
    error.hint = "needs a driver that can and exclusive mode: rdma system set netns exclusive";
  }
  return Fail(std::move(error));
}

Result<void> NetlinkRdma::AddRxe(const std::string& name, const std::string& netdev) {
  nl::Message message = nl::AddRxeMessage(name, netdev);
  auto done = socket_.Request(message);
  if (done) return done;
  return Fail(Wrap(WithRxeReason(std::move(done.error()), name, netdev),
                   "adding soft RoCE device " + name + " on " + netdev));
}

Result<bool> NetlinkRdma::DeleteRxe(const std::string& name) {
  const std::string what = "deleting soft RoCE device " + name;
  const auto index = RH_TRY_WRAP(FindIndex(name), what);
  if (!index) return false;
  nl::Message message = nl::DeleteRdmaLinkMessage(*index);
  auto done = socket_.Request(message);
  if (done) return true;
  if (done.error().sys_errno == ENODEV || done.error().sys_errno == ENOENT) return false;
  Error error = Wrap(std::move(done.error()), what);
  if (error.sys_errno == EINVAL) error.hint = "it is not a software device; only those can be deleted";
  return Fail(std::move(error));
}

// A kernel may not list a kind by this command, or the device may have gone: then it has no users.
bool ListsNothing(const Error& error) {
  switch (error.sys_errno) {
    case EOPNOTSUPP:
    case EINVAL:
    case ENODEV:
    case ENOENT:
      return true;
    default:
      return false;
  }
}

Result<std::vector<RdmaUser>> NetlinkRdma::ListUsers(const std::string& name) {
  const std::string what = "listing the users of RDMA device " + name;
  const auto index = RH_TRY_WRAP(FindIndex(name), what);
  std::map<std::uint32_t, RdmaUser> users;
  if (!index) return std::vector<RdmaUser>{};
  for (const nl::RdmaResourceKind& kind : nl::RdmaResourceKinds()) {
    nl::Message message = nl::DumpRdmaResourcesMessage(kind, *index);
    using Owners = std::vector<std::uint32_t>;
    auto lists = socket_.Dump<Owners>(message, [&](const nl::Received& received) {
      return std::optional<Owners>(nl::ParseRdmaOwners(kind, received));
    });
    if (!lists && ListsNothing(lists.error())) continue;
    if (!lists) return Fail(Wrap(std::move(lists.error()), what));
    for (const Owners& owners : *lists) {
      for (const std::uint32_t pid : owners) {
        users[pid].pid = pid;
        ++users[pid].resources[kind.name];
      }
    }
  }
  std::vector<RdmaUser> found;
  found.reserve(users.size());
  for (auto& [pid, user] : users) found.push_back(std::move(user));
  return found;
}

}  // namespace

Result<std::unique_ptr<RdmaApi>> OpenNetlinkRdma(const NetNs& ns) {
  std::optional<nl::Socket> socket;
  auto opened = OpenSocketsIn(ns, [&]() -> Result<void> {
    socket = RH_TRY(nl::Socket::Open(NETLINK_RDMA));
    return {};
  });
  if (!opened) {
    Error error = Wrap(std::move(opened.error()), "opening RDMA netlink in " + ns.path());
    if (error.sys_errno == EPROTONOSUPPORT) {
      error.code = ErrorCode::kUnsupported;
      error.hint = "the kernel's RDMA subsystem is not there: modprobe ib_core";
    }
    return Fail(std::move(error));
  }
  return std::make_unique<NetlinkRdma>(std::move(*socket));
}

}  // namespace railhead

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
  // Contexts come with every use of an uverbs node (Linux 5.13); the others are for kernels before.
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
