#include "cni/nccl/nccl_config.h"

#include <sys/socket.h>

#include <algorithm>

namespace railhead {

std::optional<int> SharedValue(const std::vector<HandoffNic>& nics, std::optional<int> HandoffNic::*value) {
  if (nics.empty()) return std::nullopt;
  const auto first = nics.front().*value;
  const bool same =
      std::all_of(nics.begin(), nics.end(), [&](const HandoffNic& nic) { return nic.*value == first; });
  return same ? first : std::nullopt;
}

std::string FamilyName(const GidSearch& search) {
  return search.range.address.Family() == AF_INET ? "AF_INET" : "AF_INET6";
}

}  // namespace railhead
