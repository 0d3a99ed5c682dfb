// A subnet divided into blocks: block i is the `size` addresses from base + i * size on.
//
// Only blocks with at least one usable address count. IPv6 subnets have more blocks than any cluster
// needs, so they end at kMaxBlocks.
// Threads: immutable value. Errors: kInvalid for a size that is not a power of two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ipam/store/range.h"
#include "netns/base/result.h"

namespace railhead::ipam {

class PoolLayout {
 public:
  static constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 40;

  // `ranges`: the usable addresses of the subnet.
  static Result<PoolLayout> Make(RangeSet ranges, std::uint64_t size);

  [[nodiscard]] const std::string& pool() const { return pool_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] IpRange Block(std::uint64_t index) const;
  // How many of its addresses are usable.
  [[nodiscard]] std::uint64_t AddressesOf(std::uint64_t index) const;
  // The first block from `from` on that has any; nullopt behind the last.
  [[nodiscard]] std::optional<std::uint64_t> NextFrom(std::uint64_t from) const;
  // The number of blocks, including those without usable addresses.
  [[nodiscard]] std::uint64_t Count() const;
  // Where the search of a node begins: spread over the subnet, so that nodes that start together
  // seldom try the same block.
  [[nodiscard]] std::uint64_t StartOf(std::string_view node) const;

 private:
  PoolLayout(RangeSet ranges, std::uint64_t size)
      : ranges_(std::move(ranges)), pool_(ranges_.subnet().ToString()), size_(size) {}
  [[nodiscard]] std::uint64_t IndexOf(const IpAddress& address) const;

  RangeSet ranges_;
  std::string pool_;
  std::uint64_t size_;
};

// The addresses of a block of any subnet; nullopt when `pool` is not a subnet.
std::optional<IpRange> RangeOfBlock(std::string_view pool, std::uint64_t index, std::uint64_t size);

}  // namespace railhead::ipam
