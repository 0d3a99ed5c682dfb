#include "netns/nl/attributes.h"

#include <netlink/attr.h>

#include <algorithm>

namespace railhead::nl {

void ForEachAttribute(BytesView bytes, const std::function<void(int, BytesView)>& visit) {
  // libnl counts in int; no netlink message comes near that.
  int remaining = static_cast<int>(std::min<std::size_t>(bytes.size(), 1U << 30U));
  const auto* attribute = reinterpret_cast<const nlattr*>(bytes.data());
  while (nla_ok(attribute, remaining) != 0) {
    visit(nla_type(attribute), {static_cast<const std::uint8_t*>(nla_data(attribute)),
                                static_cast<std::size_t>(nla_len(attribute))});
    attribute = nla_next(attribute, &remaining);
  }
}

std::string ReadString(BytesView payload) {
  return {payload.begin(), std::ranges::find(payload, std::uint8_t{0})};
}

std::optional<MacAddress> ReadMac(BytesView payload) {
  MacAddress mac;
  if (payload.size() != mac.bytes.size()) return std::nullopt;
  std::copy(payload.begin(), payload.end(), mac.bytes.begin());
  return mac;
}

std::optional<IpAddress> ReadAddress(BytesView payload) {
  return IpAddress::FromBytes(payload.data(), payload.size());
}

}  // namespace railhead::nl
