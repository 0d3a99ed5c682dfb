#include "cni/fabric/gateway.h"

#include <algorithm>
#include <array>
#include <utility>

namespace railhead {
namespace {

using Place = Gateway::Place;

constexpr std::array kPlaces = {std::pair{"first", Place::kFirst}, std::pair{"last", Place::kLast},
                                std::pair{"other", Place::kOther}};

std::optional<IpAddress> AddressAt(Place place, const IpPrefix& network) {
  const int host_bits = network.address.Bits() - network.length;
  if (host_bits == 0) return std::nullopt;
  if (place == Place::kOther) return host_bits == 1 ? std::optional(network.First()) : std::nullopt;
  if (place == Place::kFirst) return network.First().Plus(1);
  if (host_bits == 1 || network.address.IsV6()) return network.Last();
  return network.First().Plus((std::uint64_t{1} << static_cast<unsigned>(host_bits)) - 2);
}

}  // namespace

std::optional<Gateway> Gateway::Parse(std::string_view text) {
  const auto* const named = std::ranges::find(kPlaces, text, &decltype(kPlaces)::value_type::first);
  if (named != kPlaces.end()) return Gateway{named->second, {}};
  const auto address = IpAddress::Parse(text);
  if (!address) return std::nullopt;
  return Gateway{Place::kAddress, *address};
}

std::string Gateway::ToString() const {
  const auto* const named = std::ranges::find(kPlaces, place, &decltype(kPlaces)::value_type::second);
  return named == kPlaces.end() ? address.ToString() : named->first;
}

std::optional<IpAddress> Gateway::In(const IpPrefix& network) const {
  if (place != Place::kAddress) return AddressAt(place, network);
  return network.Contains(address) ? std::optional(address) : std::nullopt;
}

}  // namespace railhead
