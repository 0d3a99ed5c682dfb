// The addresses a pool may hand out: a subnet's ranges without what is reserved.
//
// A RangeSet is made once from a RangeSpec, which is checked field by field,
// and is immutable afterwards: sorted, disjoint intervals of host addresses.
// Left out are the gateway, the excluded ranges, the network address (IPv6: the
// subnet-router anycast address, RFC 4291 2.6.1) and the IPv4 broadcast
// address; /31 and /127 (RFC 3021, RFC 6164) and single addresses have neither.
// Addresses are also known by index, 0 .. Size() - 1 in ascending order: what a
// deterministic policy computes with.
// Errors: kInvalid, naming the field as the configuration spells it.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead {

// first <= last, both included, one family.
struct AddressRange {
  IpAddress first;
  IpAddress last;

  // "10.0.0.1-10.0.0.9", "10.0.0.1" or "10.0.0.0/28" (all of it). `field` is
  // named in the error.
  static Result<AddressRange> Parse(std::string_view text, std::string_view field);

  [[nodiscard]] std::string ToString() const;
  [[nodiscard]] bool Contains(const IpAddress& address) const { return first <= address && address <= last; }
  bool operator==(const AddressRange&) const = default;
};

// The address below; nullopt for the lowest of the family.
std::optional<IpAddress> PreviousAddress(const IpAddress& address);

struct RangeSpec {
  IpPrefix subnet;                       // host bits are not looked at
  std::vector<AddressRange> ranges;      // empty: the whole subnet
  std::vector<AddressRange> exclusions;  // may reach out of the ranges
  std::optional<IpAddress> gateway;
};

class RangeSet {
 public:
  static Result<RangeSet> Make(const RangeSpec& spec);

  // What of it is in `parts`, which are disjoint and sorted; nullopt: nothing.
  [[nodiscard]] std::optional<RangeSet> Within(const std::vector<AddressRange>& parts) const;

  [[nodiscard]] const IpPrefix& subnet() const { return subnet_; }
  [[nodiscard]] const std::vector<AddressRange>& intervals() const { return intervals_; }
  // How many addresses; saturates at 2^64 - 1.
  [[nodiscard]] std::uint64_t Size() const;
  [[nodiscard]] bool Contains(const IpAddress& address) const;
  // nullopt: index >= Size().
  [[nodiscard]] std::optional<IpAddress> At(std::uint64_t index) const;
  // nullopt: not one of the addresses.
  [[nodiscard]] std::optional<std::uint64_t> IndexOf(const IpAddress& address) const;
  // "10.0.0.1-10.0.0.2, 10.0.0.4"; long lists are cut.
  [[nodiscard]] std::string ToString() const;

 private:
  RangeSet(const IpPrefix& subnet, std::vector<AddressRange> intervals)
      : subnet_(subnet), intervals_(std::move(intervals)) {}

  IpPrefix subnet_;
  std::vector<AddressRange> intervals_;
};

}  // namespace railhead
