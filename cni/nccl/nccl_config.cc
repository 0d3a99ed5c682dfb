#include "cni/nccl/nccl_config.h"

#include <sys/socket.h>

#include <algorithm>

#include "cni/nccl/gid_selection.h"
#include "cni/nccl/nic_config.h"

namespace railhead::nccl {

std::optional<int> SharedValue(const std::vector<NicConfig>& nics, std::optional<int> NicConfig::*value) {
  if (nics.empty()) return std::nullopt;
  const auto first = nics.front().*value;
  const bool same = std::ranges::all_of(nics, [&](const NicConfig& nic) { return nic.*value == first; });
  return same ? first : std::nullopt;
}

std::string FamilyName(const GidSearch& search) {
  return search.range.address.Family() == AF_INET ? "AF_INET" : "AF_INET6";
}

}  // namespace railhead::nccl
