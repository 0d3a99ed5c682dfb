#include "netns/sys/netdev_sysfs.h"

#include <net/if_arp.h>

#include <cerrno>
#include <set>
#include <string_view>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::string_view kUpper = "upper_";
constexpr std::string_view kLower = "lower_";

// Along the links that begin with `kind`.
Result<void> Collect(const Root& root, const std::string& netdev, std::string_view kind,
                     std::set<std::string>* found) {
  const auto entries = RH_TRY(ListDirectory(root.Path("/sys/class/net/") + netdev));
  if (!entries) return {};
  for (const std::string& entry : *entries) {
    if (entry.rfind(kind, 0) != 0) continue;
    const std::string other = entry.substr(kind.size());
    if (found->insert(other).second) RH_TRY(Collect(root, other, kind, found));
  }
  return {};
}

Result<std::vector<std::string>> Stacked(const Root& root, const std::string& netdev, std::string_view kind) {
  std::set<std::string> found;
  RH_TRY(Collect(root, netdev, kind, &found));
  found.erase(netdev);
  return std::vector<std::string>(found.begin(), found.end());
}

}  // namespace

Result<std::vector<std::string>> UpperDevicesOf(const Root& root, const std::string& netdev) {
  return Stacked(root, netdev, kUpper);
}

Result<std::vector<std::string>> LowerDevicesOf(const Root& root, const std::string& netdev) {
  return Stacked(root, netdev, kLower);
}

Result<std::optional<std::string>> ReadNetdevAttribute(const Root& root, const std::string& netdev,
                                                       const std::string& attribute) {
  auto text = ReadAttribute(root.Path("/sys/class/net/").append(netdev).append("/").append(attribute));
  if (!text && text.error().sys_errno == EINVAL) return std::nullopt;
  return text;
}

Result<std::optional<int>> HardwareTypeOf(const Root& root, const std::string& netdev) {
  const auto text = RH_TRY(ReadNetdevAttribute(root, netdev, "type"));
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
