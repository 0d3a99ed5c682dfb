#include "tests/support/fake_kernel/fake_gids.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace railhead::testing {

IpAddress LinkLocalOf(const MacAddress& mac) {
  std::array<std::uint8_t, 16> bytes{0xfe, 0x80};
  const auto& m = mac.bytes;
  const std::array<std::uint8_t, 8> eui{
      static_cast<std::uint8_t>(m[0] ^ 2U), m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
  std::copy(eui.begin(), eui.end(), bytes.begin() + 8);
  return *IpAddress::FromBytes(bytes.data(), bytes.size());
}

bool FakeGidTable::Has(int netdev, const IpAddress& gid, GidType type) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const std::optional<Slot>& slot) {
    return slot && slot->netdev == netdev && slot->gid == gid && slot->type == type;
  });
}

void FakeGidTable::AddDefaults(int netdev, const MacAddress& mac) {
  for (std::size_t i = 0; i < types_.size(); ++i) slots_[i] = Slot{LinkLocalOf(mac), types_[i], netdev, 0};
}

void FakeGidTable::Add(int netdev, const IpAddress& address, int hidden_reads) {
  const IpAddress gid = GidOf(address);
  for (const GidType type : types_) {
    if (Has(netdev, gid, type)) continue;
    const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(types_.size());
    const auto free = std::find(first, slots_.end(), std::nullopt);
    if (free != slots_.end()) *free = Slot{gid, type, netdev, hidden_reads};
  }
}

void FakeGidTable::Remove(int netdev, const IpAddress& address) {
  const IpAddress gid = GidOf(address);
  for (std::size_t i = types_.size(); i < slots_.size(); ++i) {
    if (slots_[i] && slots_[i]->netdev == netdev && slots_[i]->gid == gid) slots_[i].reset();
  }
}

void FakeGidTable::CountRead() {
  for (auto& slot : slots_) {
    if (slot && slot->hidden_reads > 0) --slot->hidden_reads;
  }
}

}  // namespace railhead::testing
