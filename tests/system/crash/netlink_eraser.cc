#include "tests/system/crash/netlink_eraser.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "netns/nl/socket.h"

namespace railhead::crash {
namespace {

constexpr std::size_t kLongest = 8192;

bool Read(pid_t pid, std::uint64_t from, void* to, std::size_t size) {
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(from), size};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

// Where the bytes are that the call sends.
std::optional<iovec> Sent(pid_t pid, std::uint64_t number, const std::uint64_t* arguments) {
  if (number == SYS_sendto) {
    return iovec{reinterpret_cast<void*>(arguments[1]), arguments[2]};  // NOLINT(performance-no-int-to-ptr)
  }
  if (number != SYS_sendmsg) return std::nullopt;
  msghdr message{};
  iovec vector{};
  if (!Read(pid, arguments[1], &message, sizeof(message)) || message.msg_iovlen != 1) return std::nullopt;
  if (!Read(pid, reinterpret_cast<std::uint64_t>(message.msg_iov), &vector, sizeof(vector)))
    return std::nullopt;
  return vector;
}

bool HasAttribute(std::span<const std::uint8_t> message, int wanted) {
  constexpr std::size_t kHeaders = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(ifinfomsg));
  if (message.size() < kHeaders) return false;
  bool found = false;
  nl::ForEachAttribute(message.subspan(kHeaders), [&](int type, nl::BytesView) { found |= type == wanted; });
  return found;
}

}  // namespace

bool EraseNetlinkRequest(pid_t pid, std::uint64_t number, const std::uint64_t* arguments,
                         const Suppressed& suppressed) {
  const auto sent = Sent(pid, number, arguments);
  if (!sent || sent->iov_len < sizeof(nlmsghdr) || sent->iov_len > kLongest) return false;
  std::vector<std::uint8_t> bytes(sent->iov_len);
  const auto start = reinterpret_cast<std::uint64_t>(sent->iov_base);
  if (!Read(pid, start, bytes.data(), bytes.size())) return false;
  nlmsghdr header{};
  std::copy_n(bytes.data(), sizeof(header), reinterpret_cast<std::uint8_t*>(&header));
  if (header.nlmsg_len != bytes.size() || header.nlmsg_type != suppressed.message_type) return false;
  if (suppressed.with_attribute && !HasAttribute(bytes, *suppressed.with_attribute)) return false;
  header.nlmsg_type = NLMSG_NOOP;
  const iovec local{&header, sizeof(header)};
  const iovec remote{sent->iov_base, sizeof(header)};
  return ::process_vm_writev(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(sizeof(header));
}

}  // namespace railhead::crash
