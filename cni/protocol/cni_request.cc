#include "cni/protocol/cni_request.h"

#include <algorithm>

namespace railhead {
namespace {

constexpr std::size_t kMaxInterfaceName = 15;  // IFNAMSIZ less the terminator

}  // namespace

bool IsInterfaceName(std::string_view text) {
  if (text.empty() || text.size() > kMaxInterfaceName || text == "." || text == "..") return false;
  // The sysctls of such an interface would be those of all interfaces (net/ipv4/devinet.c,
  // sysctl_dev_name_is_allowed). The kernel refuses new devices of these names, but not a renamed one.
  if (text == "all" || text == "default") return false;
  // JSON files hold these names, so bytes that are not UTF-8 are refused, although the kernel accepts them.
  // The kernel would take "net%d" for a request to choose a number (net/core/dev.c, dev_get_valid_name).
  return std::ranges::none_of(
      text, [](unsigned char c) { return c <= ' ' || c >= 0x7f || c == '/' || c == ':' || c == '%'; });
}

}  // namespace railhead
