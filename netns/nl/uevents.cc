#include "netns/nl/uevents.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "netns/base/text.h"
#include "netns/nl/link_messages.h"
#include "netns/nl/route_messages.h"

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

namespace railhead::nl {
namespace {

// RetransTimer of RFC 4861 section 10.
constexpr std::chrono::seconds kAskEvery{1};

Result<Socket> Subscribe(const NetNs& ns, unsigned group) {
  std::optional<Socket> events;
  const auto open = [&]() -> Result<void> {
    events = RH_TRY(Socket::Open(NETLINK_ROUTE));
    return events->Join(group);
  };
  RH_TRY(OpenSocketsIn(ns, open));
  return std::move(*events);
}

Result<bool> IsReady(Socket& socket, int index) {
  Message message = GetLinkMessage(index);
  bool ready = false;
  RH_TRY(socket.Get(message, [&](const Received& received) {
    const auto state = ParseLinkEvent(received);
    ready = state && state->ready;
  }));
  return ready;
}

// nullopt: the entry does not exist.
Result<std::optional<Neighbour>> FindNeighbour(Socket& socket, int index, const IpAddress& address) {
  Message message = DumpNeighboursMessage(index);
  const std::vector<Neighbour> all = RH_TRY(socket.Dump<Neighbour>(message, ParseNeighbour));
  for (const Neighbour& one : all) {
    if (one.link == index && one.address == address) return one;
  }
  return std::nullopt;
}

}  // namespace

Result<bool> WaitCarrier(Socket& socket, const NetNs& ns, int index,
                         std::chrono::steady_clock::time_point deadline) {
  if (RH_TRY(IsReady(socket, index))) return true;
  Socket events = RH_TRY(Subscribe(ns, RTNLGRP_LINK));
  bool look = true;
  const auto notice = [&](const Received& received) {
    const auto event = ParseLinkEvent(received);
    look = look || (event && event->index == index && (event->gone || event->ready));
  };
  for (;;) {
    if (look && RH_TRY(IsReady(socket, index))) return true;
    look = false;
    const auto waited = RH_TRY(events.WaitEvents(deadline, notice));
    look = look || waited == Socket::Wait::kLost;
    if (waited == Socket::Wait::kTimeout) return IsReady(socket, index);
  }
}

Result<std::optional<MacAddress>> WaitNeighbour(Socket& socket, const NetNs& ns, int index,
                                                const IpAddress& address,
                                                const std::function<Result<void>()>& ask,
                                                std::chrono::steady_clock::time_point deadline) {
  // Asks again only if an entry exists, that is, if somebody has asked.
  const auto look = [&](bool overdue) -> Result<std::optional<MacAddress>> {
    const auto found = RH_TRY(FindNeighbour(socket, index, address));
    if (found && IsResolved(*found)) return found->mac;
    if (found && (overdue || HasFailed(*found))) RH_TRY(ask());
    return std::nullopt;
  };
  if (const auto mac = RH_TRY(look(false))) return mac;
  Socket events = RH_TRY(Subscribe(ns, RTNLGRP_NEIGH));
  bool again = true;
  bool overdue = false;
  const auto notice = [&](const Received& received) {
    const auto event = ParseNeighbour(received);
    const bool meant = event && event->link == index && event->address == address;
    again = again || (meant && (IsResolved(*event) || HasFailed(*event)));
  };
  auto ask_at = std::chrono::steady_clock::now() + kAskEvery;
  for (;;) {
    if (again) {
      if (const auto mac = RH_TRY(look(overdue))) return mac;
    }
    again = false;
    const auto waited = RH_TRY(events.WaitEvents(std::min(deadline, ask_at), notice));
    const auto now = std::chrono::steady_clock::now();
    if (waited == Socket::Wait::kTimeout && now >= deadline) return look(false);
    overdue = now >= ask_at;
    if (overdue) ask_at = now + kAskEvery;
    again = again || overdue || waited == Socket::Wait::kLost;
  }
}

}  // namespace railhead::nl
