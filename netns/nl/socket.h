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
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead::nl {

// One netlink request as bytes. Internal to netns/nl: built on libnl's nl_msg, which no other header shows.
//
//   Message message(RTM_SETLINK, 0);
//   message.Header(ifinfomsg{...});
//   { const Message::Nest list(message, IFLA_VFINFO_LIST); message.PutU32(...); }
//
// The message remembers that a request did not fit (4 KiB, far above any of ours), and Bytes() reports it. So
// building needs no check per attribute.
// Ownership: move-only. Threads: one at a time.

// Reads netlink attributes from unchecked bytes.
//
// Everything here is total: a truncated, oversized or odd attribute ends the walk or yields nullopt, never a
// read outside the view. The same holds for the parsers built on it (*_messages.h), which fuzzers feed with
// anything.
// Ownership: views borrow. Threads: pure functions.
// Source: include/uapi/linux/netlink.h (struct nlattr).

using BytesView = std::span<const std::uint8_t>;

// The attributes of `bytes` in order, flags masked out of their types.
void ForEachAttribute(BytesView bytes, const std::function<void(int type, BytesView payload)>& visit);

// A message's payload split into its fixed header and what follows (aligned).
template <typename T>
std::optional<T> TakeHeader(BytesView& payload) {
  constexpr std::size_t kAligned = (sizeof(T) + 3) & ~std::size_t{3};
  T header;
  if (payload.size() < sizeof(T)) return std::nullopt;
  std::memcpy(&header, payload.data(), sizeof(T));
  payload = payload.subspan(payload.size() < kAligned ? payload.size() : kAligned);
  return header;
}

// A structure or number at the start of a payload; longer payloads are what
// newer kernels send.
template <typename T>
std::optional<T> ReadStruct(BytesView payload) {
  T value;
  if (payload.size() < sizeof(T)) return std::nullopt;
  std::memcpy(&value, payload.data(), sizeof(T));
  return value;
}

// Up to the first NUL or the end.
std::string ReadString(BytesView payload);
// nullopt unless exactly six bytes (InfiniBand links have 20).
std::optional<MacAddress> ReadMac(BytesView payload);
// nullopt unless 4 or 16 bytes.
std::optional<IpAddress> ReadAddress(BytesView payload);

// Assigns `value` to `target`; keeps `target` when nothing was read.
template <typename Target, typename Value>
void Store(Target& target, const std::optional<Value>& value) {
  if (value) target = static_cast<Target>(*value);
}

}  // namespace railhead::nl

struct nl_msg;
struct nlattr;

namespace railhead::nl {

class Message {
 public:
  // `flags` beside NLM_F_REQUEST; the socket adds NLM_F_ACK and the sequence.
  Message(std::uint16_t type, std::uint16_t flags);

  // The fixed header of this message type; once, before any attribute.
  template <typename T>
  void Header(const T& header) {
    Append(&header, sizeof(header));
  }

  void Put(int type, BytesView payload);
  void PutU8(int type, std::uint8_t value);
  void PutU32(int type, std::uint32_t value);
  void PutString(int type, const std::string& value);  // with its NUL
  template <typename T>
  void PutStruct(int type, const T& value) {
    Put(type, {reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)});
  }

  // An attribute that holds the attributes put while it lives.
  class Nest {
   public:
    Nest(Message& message, int type);
    ~Nest();
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;

   private:
    Message& message_;
    nlattr* start_;
  };

  // Header included; the sequence number is written in here before sending.
  Result<std::span<std::uint8_t>> Bytes();

 private:
  void Append(const void* data, std::size_t size);

  struct Free {
    void operator()(nl_msg* message) const;
  };
  std::unique_ptr<nl_msg, Free> message_;
  bool overflow_ = false;
};

// One received message; `payload` begins with the type's fixed header and is
// valid during the call it is handed to.
struct Received {
  std::uint16_t type = 0;
  std::uint16_t flags = 0;
  std::uint32_t sequence = 0;
  BytesView payload;
};

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
