// Extended capabilities in the configuration space of PCI functions.
//
// Four bytes are read at a time: each is a request to the hardware. Source: PCI Express Base
// Specification, 7.6.3 (header of an extended capability), pci_create_attr in drivers/pci/pci-sysfs.c.
// Threads: thread-safe. Errors: kPermission where only CAP_SYS_ADMIN sees more than the first 64 bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"

namespace railhead {

inline constexpr std::uint16_t kCapabilityAcs = 0x000d;
inline constexpr std::uint16_t kCapabilitySriov = 0x0010;

// The 16 bits at `offset` (even) of the function's extended capability `id`; nullopt: it has no such
// capability. kNotFound: the function does not exist.
Result<std::optional<std::uint16_t>> ReadExtendedCapability(const Root& root, const PciAddress& address,
                                                            std::uint16_t id, int offset);

}  // namespace railhead
