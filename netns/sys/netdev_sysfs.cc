#include "netns/sys/netdev_sysfs.h"

#include <net/if_arp.h>

#include <set>
#include <string_view>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::string_view kUpper = "upper_";

Result<void> CollectUppers(const Root& root, const std::string& netdev, std::set<std::string>* uppers) {
  const auto entries = RH_TRY(ListDirectory(root.Path("/sys/class/net/") + netdev));
  if (!entries) return {};
  for (const std::string& entry : *entries) {
    if (entry.rfind(kUpper, 0) != 0) continue;
    const std::string upper = entry.substr(kUpper.size());
    if (uppers->insert(upper).second) RH_TRY(CollectUppers(root, upper, uppers));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> UpperDevicesOf(const Root& root, const std::string& netdev) {
  std::set<std::string> uppers;
  RH_TRY(CollectUppers(root, netdev, &uppers));
  uppers.erase(netdev);
  return std::vector<std::string>(uppers.begin(), uppers.end());
}

Result<std::optional<int>> HardwareTypeOf(const Root& root, const std::string& netdev) {
  const auto text = RH_TRY(ReadAttribute(root.Path("/sys/class/net/") + netdev + "/type"));
  if (!text) return std::nullopt;
  const auto type = ParseInt(*text);
  if (!type || *type < 0 || *type > 0xffff) {
    return Fail(ErrorCode::kConflict, "the type of " + netdev + " in sysfs is '" + *text + "', not a number");
  }
  return static_cast<int>(*type);
}

std::string HardwareTypeName(int type) {
  switch (type) {
    case ARPHRD_ETHER:
      return "ether";
    case ARPHRD_INFINIBAND:
      return "infiniband";
    case ARPHRD_LOOPBACK:
      return "loopback";
    default:
      return std::to_string(type);
  }
}

}  // namespace railhead
