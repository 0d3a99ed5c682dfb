// One netlink request as bytes. Internal to netns/nl: built on libnl's nl_msg, which no other header shows.
//
//   Message message(RTM_SETLINK, 0);
//   message.Header(ifinfomsg{...});
//   { const Message::Nest list(message, IFLA_VFINFO_LIST); message.PutU32(...); }
//
// The message remembers that a request did not fit (4 KiB, far above any of ours), and Bytes() reports it. So
// building needs no check per attribute.
// Received is one message from the kernel, and borrows its bytes.
// Ownership: move-only. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "netns/base/result.h"
#include "netns/nl/attributes.h"

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

}  // namespace railhead::nl
