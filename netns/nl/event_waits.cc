#include "netns/nl/event_waits.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "netns/nl/link_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/neighbour_messages.h"

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
