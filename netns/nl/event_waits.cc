#include "netns/nl/event_waits.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "netns/nl/link_messages.h"
#include "netns/nl/neighbour_messages.h"

namespace railhead::nl {
namespace {

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

// One neighbour of one link.
class Asked {
 public:
  Asked(Socket& socket, int index, const IpAddress& address) : socket_(socket) {
    wanted_.link = index;
    wanted_.address = address;
  }

  [[nodiscard]] bool IsMeant(const Neighbour& neighbour) const {
    return neighbour.link == wanted_.link && neighbour.address == wanted_.address;
  }

  // Its MAC, if it has one; where the kernel gave up, it is told to ask again.
  Result<std::optional<MacAddress>> Look() {
    Message message = DumpNeighboursMessage(wanted_.link);
    const std::vector<Neighbour> all = RH_TRY(socket_.Dump<Neighbour>(message, ParseNeighbour));
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Neighbour& one) { return IsMeant(one); });
    if (found == all.end()) return std::nullopt;
    if (IsResolved(*found)) return found->mac;
    if (HasFailed(*found)) {
      Message again = ResolveNeighbourMessage(wanted_);
      RH_TRY(socket_.Request(again));
    }
    return std::nullopt;
  }

 private:
  Socket& socket_;
  Neighbour wanted_;
};

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
                                                std::chrono::steady_clock::time_point deadline) {
  Asked asked(socket, index, address);
  if (const auto mac = RH_TRY(asked.Look())) return mac;
  Socket events = RH_TRY(Subscribe(ns, RTNLGRP_NEIGH));
  bool look = true;
  const auto notice = [&](const Received& received) {
    const auto event = ParseNeighbour(received);
    look = look || (event && asked.IsMeant(*event) && (IsResolved(*event) || HasFailed(*event)));
  };
  for (;;) {
    if (look) {
      if (const auto mac = RH_TRY(asked.Look())) return mac;
    }
    look = false;
    const auto waited = RH_TRY(events.WaitEvents(deadline, notice));
    look = look || waited == Socket::Wait::kLost;
    if (waited == Socket::Wait::kTimeout) return asked.Look();
  }
}

}  // namespace railhead::nl
