// RDMA devices as sysfs shows them: character devices, ports, soft RoCE parents.
//
// Reads below /sys of `root` at each call. An absent device, port or attribute is nullopt or an empty list.
// In exclusive mode sysfs shows the RDMA devices of the reader's namespace only. GID tables: netns/gid.
// Attributes: Documentation/ABI/stable/sysfs-class-infiniband.
// Threads: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"

namespace railhead {

// The numbers of enum ib_port_state (include/rdma/ib_verbs.h).
enum class PortState : std::uint8_t {
  kNop = 0,
  kDown = 1,
  kInit = 2,
  kArmed = 3,
  kActive = 4,
  kActiveDefer = 5,
};

enum class LinkLayer : std::uint8_t { kUnknown, kEthernet, kInfiniband };

// Names in /sys/class/infiniband, sorted.
Result<std::vector<std::string>> ListRdmaDevices(const Root& root);

// "uverbs3", the character device below /dev/infiniband of an RDMA device.
Result<std::optional<std::string>> UverbsOf(const Root& root, std::string_view ibdev);

// All character devices of an RDMA device below /dev/infiniband: uverbsN, umadN, issmN.
struct RdmaCharDevices {
  std::optional<std::string> uverbs;
  std::optional<std::string> umad;
  std::optional<std::string> issm;
};
Result<RdmaCharDevices> CharDevicesOf(const Root& root, std::string_view ibdev);
// The character devices of a PCI function with one RDMA device, without a search through all others. The
// kernel makes them children of the function too (hardware only, not soft RoCE).
Result<RdmaCharDevices> CharDevicesOf(const Root& root, const PciAddress& address);

Result<std::optional<PortState>> PortStateOf(const Root& root, std::string_view ibdev, int port);
// The same, of the port's own directory, for those who ask often.
Result<std::optional<PortState>> PortStateIn(const std::string& port_directory);
Result<std::optional<LinkLayer>> LinkLayerOf(const Root& root, std::string_view ibdev, int port);

// Soft RoCE: the network device that an rxe device was made on. nullopt for
// hardware, whose parent is a PCI function.
Result<std::optional<std::string>> RxeParentOf(const Root& root, std::string_view ibdev);

// Soft RoCE devices on a network device, sorted.
Result<std::vector<std::string>> RxeDevicesOf(const Root& root, std::string_view netdev);

}  // namespace railhead
