// A netlink socket: requests with acknowledgement, single answers, dumps, events.
// Internal to netns/nl.
//
// Messages and attributes are libnl's. This class sends and receives by itself, since libnl hides three
// things: the extended-ack text of an error, NLM_F_DUMP_INTR, and the deadline of a wait.
// Ownership: move-only, owns the descriptor. It stays in the network namespace in which it was opened.
// Threads: one at a time.
// Errors: the kernel's errno, its text and the extended-ack text in parentheses, without the attempted
// action: callers wrap.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/nl/attributes.h"
#include "netns/nl/message.h"

namespace railhead::nl {

class Socket {
 public:
  using Visitor = std::function<void(const Received&)>;

  // In the calling thread's network namespace: use it inside OpenSocketsIn.
  static Result<Socket> Open(int protocol);

  // Borrowed, for an ioctl in this socket's namespace.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Multicast group `group` (RTNLGRP_*): events arrive from now on.
  Result<void> Join(unsigned group);

  // Sends and waits for the acknowledgement.
  Result<void> Request(Message& message);
  // Sends and hands the one answer to `visit`.
  Result<void> Get(Message& message, const Visitor& visit);
  // Sends all in one datagram, which costs one system call, and hands each answer or error to `visit` with
  // the position of its request. To a request with NLM_F_ACK of its own there can be no answer.
  using BatchVisitor = std::function<void(std::size_t request, const Result<Received>& answer)>;
  Result<void> GetAll(std::span<Message> messages, const BatchVisitor& visit);
  // All objects that `parse` recognises. Asks again when the kernel reports that the list changed during the
  // dump (kBusy if that never ends). The kernel reports that for links and addresses, not for rules.
  template <typename T>
  Result<std::vector<T>> Dump(Message& message,
                              const std::function<std::optional<T>(const Received&)>& parse) {
    std::vector<T> found;
    RH_TRY(DumpStable(
        message, [&] { found.clear(); },
        [&](const Received& received) {
          if (auto value = parse(received)) found.push_back(std::move(*value));
        }));
    return found;
  }

  enum class Wait : std::uint8_t { kEvents, kLost, kTimeout };
  // Events of one datagram; kLost: the kernel dropped some, look again.
  Result<Wait> WaitEvents(std::chrono::steady_clock::time_point deadline, const Visitor& visit);

 private:
  explicit Socket(UniqueFd fd);

  Result<void> Send(Message& message, std::uint16_t flags);
  // Writes the next sequence number in; the flags as they are then.
  std::uint16_t Number(std::span<std::uint8_t> bytes, std::uint16_t flags);
  Result<void> SendBytes(BytesView bytes);
  // One datagram from the kernel; `flags` as for recv(2).
  Result<BytesView> Receive(int flags);
  // Until the answer to the last request is complete. true: NLM_F_DUMP_INTR.
  Result<bool> Collect(bool multipart, const Visitor& visit);
  Result<void> DumpStable(Message& message, const std::function<void()>& restart, const Visitor& visit);

  UniqueFd fd_;
  std::uint32_t sequence_ = 0;
  std::unique_ptr<std::uint8_t[]> buffer_;
};

// Splits a datagram into messages; stops at the first that is not whole.
void ForEachMessage(BytesView datagram, const Socket::Visitor& visit);

// The error in an NLMSG_ERROR (or NLMSG_DONE with a status) payload; nullopt:
// it acknowledges. Malformed payloads are kIo.
std::optional<Error> ParseAck(const Received& ack);

}  // namespace railhead::nl
