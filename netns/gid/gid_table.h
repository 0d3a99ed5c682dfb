// GID tables of RDMA ports.
//
// An index is never assumed: it depends on how many RoCE types the device has and in which order addresses
// came (drivers/infiniband/core/cache.c). In shared RDMA mode the node's /sys/class/infiniband shows every
// device. In exclusive mode that class is tagged with the network namespace. Only a process whose sysfs is
// mounted there sees the device.
// Threads: pure functions over the file system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

inline constexpr std::size_t kGidSize = 16;  // bytes

enum class GidType : std::uint8_t { kRoceV1, kRoceV2, kInfiniband };

struct GidEntry {
  int index = 0;
  IpAddress gid;  // 16 bytes; IPv4 as ::ffff:a.b.c.d
  GidType type = GidType::kRoceV2;
  std::string netdev;  // name in its own namespace

  bool operator==(const GidEntry&) const = default;
};

// ::ffff:a.b.c.d of an IPv4 address, an IPv6 address as it is.
IpAddress GidOf(const IpAddress& address);
// The other way round.
IpAddress AddressOfGid(const IpAddress& gid);

// The entries in use (without empty and hidden ones), from
// /sys/class/infiniband/DEVICE/ports/PORT/{gids,gid_attrs} below `root`.
// nullopt: no such device there.
// A table has up to 1024 slots, and reading one slot costs three system calls. The kernel fills the lowest
// free slot first. So a caller that polls for a new entry reads the first `slots`, and the whole table only
// now and then.
inline constexpr int kAllSlots = -1;
Result<std::optional<std::vector<GidEntry>>> ReadGidTable(const Root& root, const std::string& device,
                                                          int port, int slots = kAllSlots);

// "index 1: ::ffff:10.0.0.1 RoCE v2 net1", a line each: for error details.
std::string Describe(const std::vector<GidEntry>& table);

// What a caller looks for.
struct GidRequest {
  IpAddress address;
  GidType type = GidType::kRoceV2;
  std::string netdev;
};

// The entry of `address` with `type` on `netdev`; the lowest index when there
// are several.
std::optional<GidEntry> FindGid(const std::vector<GidEntry>& table, const IpAddress& address, GidType type,
                                const std::string& netdev);
inline std::optional<GidEntry> FindGid(const std::vector<GidEntry>& table, const GidRequest& request) {
  return FindGid(table, request.address, request.type, request.netdev);
}

// A table as text and back, to hand it from one process to another. Anything
// that EncodeGidTable does not write decodes to kInternal.
std::string EncodeGidTable(const std::optional<std::vector<GidEntry>>& table);
Result<std::optional<std::vector<GidEntry>>> DecodeGidTable(const std::string& text);

}  // namespace railhead
