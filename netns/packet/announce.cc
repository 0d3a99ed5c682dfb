#include "netns/packet/announce.h"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "netns/base/unique_fd.h"
#include "netns/packet/frames.h"

namespace railhead {
namespace {

Result<void> SendFrame(int fd, int index, const std::vector<std::uint8_t>& frame) {
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = index;
  ssize_t sent = 0;
  do {
    sent = sendto(fd, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {};
  Error error = SysError(errno, "sending a frame");
  if (error.sys_errno == ENETDOWN) error.hint = "the interface must be up";
  return Fail(std::move(error));
}

}  // namespace

Result<void> Announce(const NetNs& ns, int index, const MacAddress& mac,
                      const std::vector<IpAddress>& addresses) {
  if (addresses.empty()) return {};
  UniqueFd fd;
  const auto open = [&]() -> Result<void> {
    // Protocol 0: it sends only, nothing is delivered to it.
    fd.Reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return FailSys(errno, "opening a packet socket");
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), "announcing addresses in " + ns.path());
  for (const IpAddress& address : addresses) {
    const auto frame = address.IsV4() ? GratuitousArp(mac, address) : UnsolicitedAdvertisement(mac, address);
    RH_TRY_WRAP(SendFrame(fd.get(), index, frame),
                "announcing " + address.ToString() + " on interface " + std::to_string(index));
  }
  return {};
}

}  // namespace railhead
