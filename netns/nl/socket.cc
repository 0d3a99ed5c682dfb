#include "netns/nl/socket.h"

#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

namespace railhead::nl {
namespace {

// Answers to RTM_GETLINK with the VFs of a large PF are the biggest single
// datagrams; dumps come in pieces of at most 32 KiB.
constexpr std::size_t kBufferSize = std::size_t{256} << 10;
constexpr int kReceiveQueue = 1 << 20;
constexpr int kDumpAttempts = 20;

Error ErrnoError(int sys_errno) {
  // SysError puts "what: " first; here the caller's wrapping does.
  Error error = SysError(sys_errno, "");
  error.message.erase(0, 2);
  return error;
}

// Extended acks of kernels before 4.12 and strict checks before 4.20 are absent:
// works without them, so failures are ignored.
void SetOptions(int fd) {
  const int on = 1;
  for (const int option : {NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK}) {
    (void)setsockopt(fd, SOL_NETLINK, option, &on, sizeof(on));
  }
  const int size = kReceiveQueue;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0) {
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
  }
}

}  // namespace

void ForEachMessage(BytesView datagram, const Socket::Visitor& visit) {
  while (datagram.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, datagram.data(), sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > datagram.size()) return;
    visit({header.nlmsg_type, header.nlmsg_flags, header.nlmsg_seq,
           datagram.subspan(sizeof(header), header.nlmsg_len - sizeof(header))});
    datagram = datagram.subspan(std::min<std::size_t>(datagram.size(), NLMSG_ALIGN(header.nlmsg_len)));
  }
}

std::optional<Error> ParseAck(const Received& ack) {
  BytesView rest = ack.payload;
  const auto status = ReadStruct<std::int32_t>(rest);
  if (!status) return Error{ErrorCode::kIo, "malformed netlink acknowledgement", "", 0};
  if (*status >= 0) return std::nullopt;

  if (ack.type == NLMSG_ERROR) {
    // Without NLM_F_CAPPED the whole request comes back before the attributes.
    const auto header = ReadStruct<nlmsgerr>(rest);
    std::size_t skip = sizeof(nlmsgerr);
    if (header && (ack.flags & NLM_F_CAPPED) == 0) {
      skip = sizeof(std::int32_t) + NLMSG_ALIGN(std::size_t{header->msg.nlmsg_len});
    }
    rest = rest.subspan(std::min(rest.size(), skip));
  } else {
    rest = rest.subspan(sizeof(std::int32_t));
  }
  const int code = *status == std::numeric_limits<std::int32_t>::min() ? EIO : -*status;
  Error error = ErrnoError(code);
  if ((ack.flags & NLM_F_ACK_TLVS) != 0) {
    ForEachAttribute(rest, [&](int type, BytesView payload) {
      if (type == NLMSGERR_ATTR_MSG) error.message += " (" + ReadString(payload) + ")";
    });
  }
  return error;
}

Socket::Socket(UniqueFd fd)
    : fd_(std::move(fd)),
      // Not zeroed: only the pages that answers need are ever touched.
      buffer_(new std::uint8_t[kBufferSize]) {}

Result<Socket> Socket::Open(int protocol) {
  UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!fd.valid()) return FailSys(errno, "opening a netlink socket");
  SetOptions(fd.get());
  return Socket(std::move(fd));
}

Result<void> Socket::Join(unsigned group) {
  // Without an address of its own the kernel takes the socket for the origin of
  // its events and skips it (do_one_broadcast in net/netlink/af_netlink.c).
  sockaddr_nl any{};
  any.nl_family = AF_NETLINK;
  if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) != 0) {
    return FailSys(errno, "binding a netlink socket");
  }
  if (setsockopt(fd_.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) != 0) {
    return FailSys(errno, "joining netlink group " + std::to_string(group));
  }
  return {};
}

std::uint16_t Socket::Number(std::span<std::uint8_t> bytes, std::uint16_t flags) {
  nlmsghdr header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.nlmsg_seq = ++sequence_;
  header.nlmsg_flags = static_cast<std::uint16_t>(header.nlmsg_flags | flags);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return header.nlmsg_flags;
}

Result<void> Socket::Send(Message& message, std::uint16_t flags) {
  const auto bytes = RH_TRY(message.Bytes());
  (void)Number(bytes, flags);
  return SendBytes(bytes);
}

Result<void> Socket::SendBytes(BytesView bytes) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t sent = 0;
  do {
    sent = sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&kernel),
                  sizeof(kernel));
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return FailSys(errno, "sending a netlink request");
  return {};
}

Result<BytesView> Socket::Receive(int flags) {
  for (;;) {
    sockaddr_nl from{};
    socklen_t from_size = sizeof(from);
    const ssize_t size = recvfrom(fd_.get(), buffer_.get(), kBufferSize, MSG_TRUNC | flags,
                                  reinterpret_cast<sockaddr*>(&from), &from_size);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return FailSys(errno, "receiving from netlink");
    if (from.nl_pid != 0) continue;  // another process, not the kernel
    if (static_cast<std::size_t>(size) > kBufferSize) {
      return Fail(ErrorCode::kIo,
                  "receiving from netlink: a message of " + std::to_string(size) + " bytes does not fit");
    }
    return BytesView(buffer_.get(), static_cast<std::size_t>(size));
  }
}

Result<bool> Socket::Collect(bool multipart, const Visitor& visit) {
  bool done = false;
  bool interrupted = false;
  std::optional<Error> error;
  while (!done) {
    const auto datagram = RH_TRY(Receive(0));
    ForEachMessage(datagram, [&](const Received& received) {
      // Left-overs of an answer that was given up.
      if (done || received.sequence != sequence_ || received.type == NLMSG_NOOP) return;
      interrupted = interrupted || (received.flags & NLM_F_DUMP_INTR) != 0;
      if (received.type == NLMSG_ERROR || received.type == NLMSG_DONE) {
        done = true;
        error = ParseAck(received);
      } else if (received.type == NLMSG_OVERRUN) {
        done = true;
        error = ErrnoError(ENOBUFS);
      } else {
        done = !multipart;
        visit(received);
      }
    });
  }
  if (error) return Fail(std::move(*error));
  return interrupted;
}

Result<void> Socket::Request(Message& message) {
  RH_TRY(Send(message, NLM_F_ACK));
  RH_TRY(Collect(true, [](const Received&) {}));
  return {};
}

Result<void> Socket::Get(Message& message, const Visitor& visit) {
  RH_TRY(Send(message, 0));
  RH_TRY(Collect(false, visit));
  return {};
}

Result<void> Socket::GetAll(std::span<Message> messages, const BatchVisitor& visit) {
  const std::uint32_t first = sequence_ + 1;
  std::vector<std::uint8_t> datagram;
  std::vector<bool> acknowledged;  // this request's answer is followed by an acknowledgement
  for (Message& message : messages) {
    const auto bytes = RH_TRY(message.Bytes());
    acknowledged.push_back((Number(bytes, 0) & NLM_F_ACK) != 0);
    datagram.insert(datagram.end(), bytes.begin(), bytes.end());
    datagram.resize(NLMSG_ALIGN(datagram.size()));
  }
  RH_TRY(SendBytes(datagram));
  // The kernel works off one request after the other within sendto().
  for (std::size_t left = messages.size(); left > 0;) {
    const auto answer = RH_TRY(Receive(0));
    ForEachMessage(answer, [&](const Received& received) {
      const std::uint32_t request = received.sequence - first;
      if (request >= messages.size() || received.type == NLMSG_NOOP || left == 0) return;
      const bool ends = received.type == NLMSG_ERROR;
      if (ends || !acknowledged[request]) --left;
      auto error = ends ? ParseAck(received) : std::nullopt;
      if (error) visit(request, Fail(std::move(*error)));
      if (!ends) visit(request, received);
    });
  }
  return {};
}

Result<void> Socket::DumpStable(Message& message, const std::function<void()>& restart,
                                const Visitor& visit) {
  for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
    restart();
    RH_TRY(Send(message, NLM_F_DUMP));
    const bool interrupted = RH_TRY(Collect(true, visit));
    if (!interrupted) return {};
  }
  return Fail(ErrorCode::kBusy, "the list kept changing while it was read", "try again");
}

Result<Socket::Wait> Socket::WaitEvents(std::chrono::steady_clock::time_point deadline,
                                        const Visitor& visit) {
  using std::chrono::milliseconds;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd waiting{fd_.get(), POLLIN, 0};
    const int timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
    const int ready = poll(&waiting, 1, timeout);
    if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for netlink events");
    if (ready > 0) break;
    if (ready == 0 && left <= timeout) return Wait::kTimeout;
  }
  // What poll saw may have been another process's message: do not wait for more.
  auto datagram = Receive(MSG_DONTWAIT);
  if (!datagram && datagram.error().sys_errno == ENOBUFS) return Wait::kLost;
  if (!datagram && datagram.error().sys_errno == EAGAIN) return Wait::kEvents;
  if (!datagram) return Fail(std::move(datagram.error()));
  ForEachMessage(*datagram, visit);
  return Wait::kEvents;
}

}  // namespace railhead::nl
