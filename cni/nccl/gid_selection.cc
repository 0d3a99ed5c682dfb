#include "cni/nccl/gid_selection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "netns/base/text.h"

namespace railhead::nccl {
namespace {

// A table slot as NCCL sees it; an empty one is the GID of zeros.
struct Slot {
  IpAddress address = *IpAddress::Parse("::");
  std::optional<GidType> type;

  // Only fe80::/64: NCCL treats an IPv4 address of 169.254.0.0/16 like any other.
  [[nodiscard]] bool IsValid() const {
    static const IpPrefix link_local = *IpPrefix::Parse("fe80::/64");
    return !address.IsUnspecified() && !link_local.Contains(address);
  }
};

std::vector<Slot> SlotsOf(const std::vector<GidEntry>& table) {
  std::vector<Slot> slots(1);
  for (const GidEntry& entry : table) {
    const auto index = static_cast<std::size_t>(entry.index);
    if (slots.size() <= index) slots.resize(index + 1);
    slots[index] = {AddressOfGid(entry.gid), entry.type};
  }
  return slots;
}

// The smallest prefix that has all of them; nullopt: of several families.
std::optional<IpPrefix> Cover(const std::vector<NicConfig>& nics) {
  IpPrefix cover = IpPrefix::Host(nics.front().address);
  for (const NicConfig& nic : nics) {
    if (nic.address.Family() != cover.address.Family()) return std::nullopt;
    while (!cover.Contains(nic.address)) cover = IpPrefix{cover.address, cover.length - 1}.Network();
  }
  return cover;
}

std::string IndexOf(const NicConfig& nic) {
  return nic.rdma_device + " " + std::to_string(nic.gid_index);
}

}  // namespace

std::optional<int> NcclPicks(const std::vector<GidEntry>& table, const GidSearch& search) {
  const std::vector<Slot> slots = SlotsOf(table);
  const int family = search.range.address.Family();
  if (search.range.address.IsV6() && slots.front().address.IsUnspecified()) return std::nullopt;
  std::size_t picked = 0;
  for (std::size_t i = 1; i < slots.size(); ++i) {
    const Slot& now = slots[picked];
    const Slot& candidate = slots[i];
    if (candidate.address.Family() != family || !search.range.Contains(candidate.address)) continue;
    // An address of the requested family replaces one of another family, whatever its RoCE version.
    const bool other_family = now.address.Family() != family;
    const bool better = candidate.IsValid() && candidate.type == GidType::kRoceV2 &&
                        (candidate.type != now.type || !now.IsValid());
    if (other_family || better) picked = i;
  }
  return static_cast<int>(picked);
}

Result<GidSelection> SelectGids(const std::vector<NicConfig>& nics, const GidTableReader& table_of) {
  const int first = nics.front().gid_index;
  const bool alike = std::ranges::all_of(nics, [&](const NicConfig& nic) { return nic.gid_index == first; });
  if (alike) return first;
  const auto cover = Cover(nics);
  bool found = cover.has_value();
  std::string indices;
  std::string tables;
  for (const NicConfig& nic : nics) {
    const auto table = RH_TRY(table_of(nic));
    found = found && NcclPicks(table, {*cover}) == nic.gid_index;
    indices += (indices.empty() ? "" : ", ") + IndexOf(nic);
    tables += "\n" + nic.rdma_device + ", where " + nic.address.ToString() + " is meant:\n" + Describe(table);
  }
  if (found) return GidSearch{*cover};
  return Fail(
      ErrorCode::kConflict, "the pod's NICs have different GID indices: " + indices,
      "NCCL takes one index for all HCAs, and its own search would take another address" +
          std::string(cover ? " of " + cover->ToString() : ", for they are of both families") +
          ": look for further addresses on one of the NICs, for a GID table without an entry 0 and "
          "IPv6, which NCCL before 2.26 cannot search, or for devices of different RoCE capabilities in "
          "one pool. GID tables:" +
          tables);
}

}  // namespace railhead::nccl
