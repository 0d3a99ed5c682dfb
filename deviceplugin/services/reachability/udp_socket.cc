#include "deviceplugin/services/reachability/udp_socket.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace railhead::reachability {
namespace {

Result<UniqueFd> OpenUdpHere(const std::string& device, const UdpEnd& own, int traffic_class) {
  UniqueFd fd(socket(own.address.Family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FailSys(errno, "opening a UDP socket");
  if (setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, device.c_str(),
                 static_cast<socklen_t>(device.size())) != 0)
    return FailSys(errno, "binding a UDP socket to " + device);
  const bool v4 = own.address.IsV4();
  const int probe = IP_PMTUDISC_PROBE;
  static_assert(IP_PMTUDISC_PROBE == IPV6_PMTUDISC_PROBE);
  if (setsockopt(fd.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &probe,
                 sizeof probe) != 0)
    return FailSys(errno, "turning fragmentation off");
  if (setsockopt(fd.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &traffic_class,
                 sizeof traffic_class) != 0)
    return FailSys(errno, "setting the traffic class " + std::to_string(traffic_class));
  const UdpSocketAddress address(own);
  if (bind(fd.get(), address.data(), address.size) != 0)
    return FailSys(errno,
                   "binding a UDP socket to " + own.address.ToString() + " port " + std::to_string(own.port));
  return fd;
}

}  // namespace

Result<UniqueFd> OpenUdp(const NetNs& ns, const std::string& device, const UdpEnd& own, int traffic_class) {
  UniqueFd fd;
  const auto open = [&]() -> Result<void> {
    fd = RH_TRY(OpenUdpHere(device, own, traffic_class));
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), "in " + ns.path());
  return fd;
}

UdpSocketAddress::UdpSocketAddress(const UdpEnd& end) {
  if (end.address.IsV4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(end.port);
    std::memcpy(&in.sin_addr, end.address.Data(), end.address.Size());
    std::memcpy(&storage, &in, sizeof in);
    size = sizeof in;
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(end.port);
    std::memcpy(&in.sin6_addr, end.address.Data(), end.address.Size());
    std::memcpy(&storage, &in, sizeof in);
    size = sizeof in;
  }
}

std::optional<UdpEnd> UdpSocketAddress::End() const {
  if (storage.ss_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    return UdpEnd{*IpAddress::FromBytes(&in.sin_addr, sizeof in.sin_addr), ntohs(in.sin_port)};
  }
  if (storage.ss_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    return UdpEnd{*IpAddress::FromBytes(&in.sin6_addr, sizeof in.sin6_addr), ntohs(in.sin6_port)};
  }
  return std::nullopt;
}

UdpEnd OwnEnd(int socket) {
  UdpSocketAddress own;
  if (::getsockname(socket, own.data(), &own.size) != 0) return {};
  return own.End().value_or(UdpEnd{});
}

}  // namespace railhead::reachability
