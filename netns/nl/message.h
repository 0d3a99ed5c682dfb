// One netlink request as bytes. Internal to netns/nl: built on libnl's nl_msg,
// which no other header shows.
//
//   Message message(RTM_SETLINK, 0);
//   message.Header(ifinfomsg{...});
//   { const Message::Nest list(message, IFLA_VFINFO_LIST); message.PutU32(...); }
//
// A request that does not fit (4 KiB, far above any of ours) is remembered and
// reported by Bytes(), so that building needs no check per attribute.
// Ownership: move-only. Threads: one at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::nl {

// Reading netlink attributes out of bytes that nobody has checked.
//
// Everything here is total: a truncated, oversized or odd attribute ends the
// walk or yields nullopt, never a read outside the view. So are the parsers
// built on it (*_messages.h), which fuzzers feed with anything.
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

// Assigns what was read to `target`; leaves it alone when nothing was.
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

}  // namespace railhead::nl
