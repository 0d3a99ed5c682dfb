// The GID table of one RoCE port, by the kernel's rules.
//
// Source: drivers/infiniband/core/cache.c and roce_gid_mgmt.c. The first K slots
// are kept for the default GIDs, K being the number of RoCE types of the port; the
// GIDs of addresses take the lowest free slots above them, RoCE v1 before v2; a GID
// that is there already is not added again. What is removed leaves a hole.
// Threads: value.
#pragma once

#include <optional>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/gid/gid_table.h"

namespace railhead::testing {

// fe80:: with the MAC's EUI-64.
IpAddress LinkLocalOf(const MacAddress& mac);

class FakeGidTable {
 public:
  struct Slot {
    IpAddress gid;
    GidType type = GidType::kRoceV2;
    int netdev = 0;        // FakeNetdev::id
    int hidden_reads = 0;  // the kernel's workqueue has not got to it yet
  };

  explicit FakeGidTable(std::vector<GidType> types) : types_(std::move(types)), slots_(kSize) {}

  void AddDefaults(int netdev, const MacAddress& mac);
  void Add(int netdev, const IpAddress& address, int hidden_reads);
  // Entries of the address, not the default GIDs.
  void Remove(int netdev, const IpAddress& address);
  void Clear() { slots_.assign(kSize, std::nullopt); }

  [[nodiscard]] const std::vector<std::optional<Slot>>& slots() const { return slots_; }
  // One look at the table: what was hidden comes one look nearer.
  void CountRead();

 private:
  static constexpr std::size_t kSize = 32;
  [[nodiscard]] bool Has(int netdev, const IpAddress& gid, GidType type) const;

  std::vector<GidType> types_;
  std::vector<std::optional<Slot>> slots_;
};

}  // namespace railhead::testing
