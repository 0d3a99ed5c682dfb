#include "netns/nl/message.h"

#include <netlink/attr.h>
#include <netlink/msg.h>

namespace railhead::nl {

void Message::Free::operator()(nl_msg* message) const {
  nlmsg_free(message);
}

Message::Message(std::uint16_t type, std::uint16_t flags)
    : message_(nlmsg_alloc_simple(type, NLM_F_REQUEST | flags)), overflow_(message_ == nullptr) {}

void Message::Append(const void* data, std::size_t size) {
  // libnl copies from the pointer; its parameter only lacks the const.
  overflow_ = overflow_ || nlmsg_append(message_.get(), const_cast<void*>(data), size, NLMSG_ALIGNTO) < 0;
}

void Message::Put(int type, BytesView payload) {
  overflow_ =
      overflow_ || nla_put(message_.get(), type, static_cast<int>(payload.size()), payload.data()) < 0;
}

void Message::PutU8(int type, std::uint8_t value) {
  PutStruct(type, value);
}

void Message::PutU32(int type, std::uint32_t value) {
  PutStruct(type, value);
}

void Message::PutString(int type, const std::string& value) {
  Put(type, {reinterpret_cast<const std::uint8_t*>(value.c_str()), value.size() + 1});
}

Message::Nest::Nest(Message& message, int type)
    : message_(message), start_(message.overflow_ ? nullptr : nla_nest_start(message.message_.get(), type)) {
  message_.overflow_ = start_ == nullptr;
}

Message::Nest::~Nest() {
  if (start_ != nullptr) nla_nest_end(message_.message_.get(), start_);
}

Result<std::span<std::uint8_t>> Message::Bytes() {
  if (overflow_) return Fail(ErrorCode::kInternal, "building a netlink request: larger than 4 KiB");
  auto* header = nlmsg_hdr(message_.get());
  return std::span<std::uint8_t>(reinterpret_cast<std::uint8_t*>(header), header->nlmsg_len);
}

}  // namespace railhead::nl
