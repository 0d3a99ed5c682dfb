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
#include <string_view>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

// The address below; nullopt for the lowest of the family.
std::optional<IpAddress> PreviousAddress(const IpAddress& address);

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

// Which address comes next, and which addresses are taken.
//
// Order: the address after the last one handed out, wrapping at the end; never lowest-first. So an address
// that was just released is the last to come back. The caches of switches and peers then have the longest
// time to forget its former owner.
//
// Taken addresses are kept as maximal runs of consecutive addresses, whether held or cooling down. The
// address after a run is free by definition. So the next free address costs one look-up per interval of the
// pool's ranges, however many addresses are taken. Taking and freeing an address costs a constant number of
// look-ups. Runs know nothing of ranges and exclusions: those may change with every configuration.
// Errors: those of the RunMap, passed through; kInternal when the runs contradict the call (a damaged store).
// Threads: none of its own; as the RunMap.

// The ordered map first -> last that keeps the runs of one pool.
class RunMap {
 public:
  RunMap() = default;
  RunMap(const RunMap&) = delete;
  RunMap& operator=(const RunMap&) = delete;
  virtual ~RunMap() = default;

  // The run with the highest first address <= `address`.
  [[nodiscard]] virtual Result<std::optional<IpRange>> AtOrBefore(const IpAddress& address) = 0;
  // Adds a run or replaces the one with the same first address.
  virtual Result<void> Put(const IpRange& run) = 0;
  virtual Result<void> Erase(const IpAddress& first) = 0;
};

// The run that `address` is in.
Result<std::optional<IpRange>> RunOf(RunMap& runs, const IpAddress& address);

// Marks a free address as taken, or a taken one as free.
Result<void> Take(RunMap& runs, const IpAddress& address);
Result<void> Free(RunMap& runs, const IpAddress& address);

// The lowest free address of `ranges` that is not below `from`; nullopt when all are taken.
Result<std::optional<IpAddress>> FirstFreeFrom(const RangeSet& ranges, RunMap& runs, const IpAddress& from);

// The first free address of `ranges` above `last_allocated`, else from the start;
// nullopt when all are taken. Without `last_allocated`: from the start.
Result<std::optional<IpAddress>> NextFree(const RangeSet& ranges, RunMap& runs,
                                          const std::optional<IpAddress>& last_allocated);

// Addresses of several pools with the same host part: a pod's rails read 10.100.0.17, 10.101.0.17,
// 10.102.0.17.
//
// The search starts above the last host part that any of the pools has allocated, and wraps. The result is
// the first host part that is free in all of them. So each pool goes on in its own order and passes over the
// addresses that another one lacks. Without such a host part, and if the pools have equally many addresses,
// the search compares indices. Ranges that differ from rail to rail then keep step.
// Cost: a bounded number of look-ups in the runs for each pool, whatever the number of addresses, free or
// taken. Past the bound the answer is "none".
// Errors: those of the RunMaps. Threads: none of its own; as the RunMaps.

struct AlignedPool {
  const RangeSet* ranges = nullptr;
  RunMap* runs = nullptr;
  std::optional<IpAddress> last_allocated;
};

// One address of each pool, all free; nullopt when none are alike. Pools of one family, each a
// subnet of its own.
Result<std::optional<std::vector<IpAddress>>> NextAligned(const std::vector<AlignedPool>& pools);

}  // namespace railhead::ipam
