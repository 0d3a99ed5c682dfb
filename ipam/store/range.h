// The addresses a pool may hand out: a subnet's ranges without the reserved addresses.
//
// A RangeSet is made once from a RangeSpec, which is checked field by field, and is immutable afterwards:
// sorted, disjoint intervals of host addresses.
// It excludes the gateway, the excluded ranges, the network address and the IPv4 broadcast address. In IPv6
// the network address is the subnet-router anycast address (RFC 4291 2.6.1). A /31, a /127 (RFC 3021, RFC
// 6164) and a single address have neither.
// Addresses are also known by index, 0 .. Size() - 1 in ascending order; a deterministic policy computes with
// it.
// Errors: kInvalid, naming the field as the configuration spells it.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct RangeSpec {
  IpPrefix subnet;                  // host bits are not looked at
  std::vector<IpRange> ranges;      // empty: the whole subnet
  std::vector<IpRange> exclusions;  // may reach out of the ranges
  std::optional<IpAddress> gateway;
};

// The addresses of both, which are each sorted and disjoint, as the result is.
std::vector<IpRange> Intersection(const std::vector<IpRange>& some, const std::vector<IpRange>& others);

class RangeSet {
 public:
  static Result<RangeSet> Make(const RangeSpec& spec);

  // The part of the set in `parts`, which are disjoint and sorted; nullopt: empty.
  [[nodiscard]] std::optional<RangeSet> Within(const std::vector<IpRange>& parts) const;

  [[nodiscard]] const IpPrefix& subnet() const { return subnet_; }
  [[nodiscard]] const std::vector<IpRange>& intervals() const { return intervals_; }
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
  RangeSet(const IpPrefix& subnet, std::vector<IpRange> intervals)
      : subnet_(subnet), intervals_(std::move(intervals)) {}

  IpPrefix subnet_;
  std::vector<IpRange> intervals_;
};

}  // namespace railhead::ipam
