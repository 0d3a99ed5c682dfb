// RdmaApi over an RDMA netlink socket in one network namespace.
// Threads and errors: see netns/kernel.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/nl/message.h"
#include "netns/nl/rdma.h"
#include "netns/ns/netns.h"

namespace railhead {

// kUnsupported when the kernel has no RDMA subsystem (loaded).
Result<std::unique_ptr<RdmaApi>> OpenNetlinkRdma(const NetNs& ns);

}  // namespace railhead

namespace railhead::nl {

// RDMA netlink (NLDEV) messages: bytes only. Internal to netns/nl.
// Source: include/uapi/rdma/rdma_netlink.h, drivers/infiniband/core/nldev.c.
// Threads: pure functions. Parsers take any bytes.

Message GetNetnsModeMessage();
Message DumpRdmaDevicesMessage();
Message GetRdmaPortMessage(std::uint32_t device_index, std::uint32_t port);
Message MoveRdmaDeviceMessage(std::uint32_t device_index, int target_fd);
Message AddRxeMessage(const std::string& name, const std::string& netdev);
Message DeleteRdmaLinkMessage(std::uint32_t device_index);

// The kinds of resources that processes have of a device, by the commands that list them.
struct RdmaResourceKind {
  const char* name;
  std::uint16_t command;
  int table;
};
std::span<const RdmaResourceKind> RdmaResourceKinds();
Message DumpRdmaResourcesMessage(const RdmaResourceKind& kind, std::uint32_t device_index);
// The processes that own the resources in one answer. A kernel client has a name in place of a number and is
// omitted. 0: the kernel does not say which process.
std::vector<std::uint32_t> ParseRdmaOwners(const RdmaResourceKind& kind, const Received& received);

// Kernels before 5.3 do not report a mode: there was only shared.
RdmaNetnsMode ParseNetnsMode(const Received& received);
// Index and name; the port is asked for separately.
std::optional<RdmaDevice> ParseRdmaDevice(const Received& received);
// Adds the facts of an answer about a port.
void ParseRdmaPort(const Received& received, RdmaDevice& device);

}  // namespace railhead::nl
