#include "netns/nl/uevents.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr unsigned kKernelGroup = 1;
// Hundreds of VFs appear at once, each with several devices; the default holds a few hundred messages.
constexpr int kBuffer = 4 * 1024 * 1024;

bool IsFromKernel(const sockaddr_nl& sender) {
  return sender.nl_pid == 0;
}

}  // namespace

bool IsRelevantUevent(std::string_view message) {
  static constexpr std::array<std::string_view, 4> kSubsystems = {"SUBSYSTEM=pci", "SUBSYSTEM=infiniband",
                                                                  "SUBSYSTEM=auxiliary", "SUBSYSTEM=vfio"};
  bool is_net = false;
  bool is_virtual = false;
  while (!message.empty()) {
    const std::string_view field = message.substr(0, message.find('\0'));
    if (Contains(kSubsystems, field)) return true;
    is_net = is_net || field == "SUBSYSTEM=net";
    is_virtual = is_virtual || field.starts_with("DEVPATH=/devices/virtual/");
    message.remove_prefix(std::min(field.size() + 1, message.size()));
  }
  return is_net && !is_virtual;
}

Result<Uevents> Uevents::Open() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!fd.valid()) return FailSys(errno, "opening a socket for the kernel's device events");
  // Beyond the system's limit only with CAP_NET_ADMIN; without, the smaller one serves.
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer) != 0)
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof kBuffer);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return FailSys(errno, "listening to the kernel's device events");
  return Uevents(std::move(fd));
}

bool Uevents::TakeRelevant() {
  bool relevant = false;
  std::array<char, 8192> buffer{};
  for (;;) {
    sockaddr_nl sender{};
    socklen_t length = sizeof sender;
    const ssize_t got =
        ::recvfrom(fd_.get(), buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&sender), &length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      relevant = true;
      continue;
    }
    if (got < 0) return relevant;
    if (!IsFromKernel(sender)) continue;
    relevant = IsRelevantUevent({buffer.data(), static_cast<std::size_t>(got)}) || relevant;
  }
}

}  // namespace railhead
