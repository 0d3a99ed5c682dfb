#include "netns/nl/counters.h"

#include <linux/netlink.h>

#include <cerrno>

#include "netns/nl/counter_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead {
namespace {

Result<nl::Socket> OpenIn(const NetNs& ns, int protocol) {
  std::optional<nl::Socket> socket;
  const auto opened = OpenSocketsIn(ns, [&]() -> Result<void> {
    socket = RH_TRY(nl::Socket::Open(protocol));
    return {};
  });
  if (!opened) return Fail(opened.error());
  return *std::move(socket);
}

}  // namespace

struct LinkCounters::State {
  nl::Socket socket;
};

LinkCounters::LinkCounters(std::unique_ptr<State> state) : state_(std::move(state)) {}
LinkCounters::LinkCounters(LinkCounters&&) noexcept = default;
LinkCounters& LinkCounters::operator=(LinkCounters&&) noexcept = default;
LinkCounters::~LinkCounters() = default;

Result<LinkCounters> LinkCounters::Open(const NetNs& ns) {
  nl::Socket socket = RH_TRY_WRAP(OpenIn(ns, NETLINK_ROUTE), "opening rtnetlink in " + ns.path());
  return LinkCounters(std::make_unique<State>(State{std::move(socket)}));
}

Result<std::optional<PfTraffic>> LinkCounters::Read(const std::string& netdev) {
  std::optional<PfTraffic> traffic;
  const auto read = [&](nl::Message message) {
    return state_->socket.Get(message,
                              [&](const nl::Received& received) { traffic = nl::ParseTraffic(received); });
  };
  auto got = read(nl::GetTrafficMessage(netdev, true));
  if (!got && got.error().sys_errno == EMSGSIZE) got = read(nl::GetTrafficMessage(netdev, false));
  if (got) return traffic;
  if (got.error().sys_errno == ENODEV) return std::nullopt;
  return Fail(Wrap(got.error(), "reading the counters of " + netdev));
}

struct RdmaCounters::State {
  nl::Socket socket;
};

RdmaCounters::RdmaCounters(std::unique_ptr<State> state) : state_(std::move(state)) {}
RdmaCounters::RdmaCounters(RdmaCounters&&) noexcept = default;
RdmaCounters& RdmaCounters::operator=(RdmaCounters&&) noexcept = default;
RdmaCounters::~RdmaCounters() = default;

Result<RdmaCounters> RdmaCounters::Open(const NetNs& ns) {
  auto opened = OpenIn(ns, NETLINK_RDMA);
  if (opened) return RdmaCounters(std::make_unique<State>(State{*std::move(opened)}));
  Error error = Wrap(opened.error(), "opening RDMA netlink in " + ns.path());
  if (error.sys_errno == EPROTONOSUPPORT) error.code = ErrorCode::kUnsupported;
  return Fail(std::move(error));
}

Result<std::optional<NamedCounters>> RdmaCounters::Read(std::uint32_t device_index) {
  nl::Message message = nl::GetRdmaCountersMessage(device_index, 1);
  NamedCounters counters;
  const auto got = state_->socket.Get(
      message, [&](const nl::Received& received) { counters = nl::ParseRdmaCounters(received); });
  if (got) return counters;
  switch (got.error().sys_errno) {
    case EINVAL:  // no such device in this namespace, or no such port (nldev_stat_get_doit)
    case ENODEV:
    case EOPNOTSUPP:  // the driver counts nothing
      return std::nullopt;
    default:
      return Fail(Wrap(got.error(), "reading the counters of RDMA device " + std::to_string(device_index)));
  }
}

}  // namespace railhead
