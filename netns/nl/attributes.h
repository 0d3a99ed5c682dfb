// Reads netlink attributes from unchecked bytes.
//
// Everything here is total: a truncated, oversized or odd attribute ends the walk or yields nullopt, never a
// read outside the view. The same holds for the parsers built on it (*_messages.h), which fuzzers feed with
// anything.
// Ownership: views borrow. Threads: pure functions.
// Source: include/uapi/linux/netlink.h (struct nlattr).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "netns/base/addresses.h"

namespace railhead::nl {

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
