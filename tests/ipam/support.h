// What the tests of ipam/ share: a scratch root, short ways to values, a clock.
// Threads: none. A failure to set up ends the test program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ipam/range.h"
#include "ipam/store.h"
#include "netns/base/root.h"

namespace railhead::testing {

// A directory of its own, removed with everything in it at the end. In memory
// where there is /dev/shm: what is tested is not the speed of a disk.
class ScratchRoot {
 public:
  ScratchRoot();
  ScratchRoot(const ScratchRoot&) = delete;
  ScratchRoot& operator=(const ScratchRoot&) = delete;
  ~ScratchRoot();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Root root() const { return Root(path_); }
  [[nodiscard]] std::string StorePath() const { return path_ + "/var/lib/railhead/ipam/store.mdb"; }
  // `path` below the root, with its directories.
  void Write(const std::string& path, const std::string& content) const;

 private:
  std::string path_;
};

IpAddress Ip(const std::string& text);
IpPrefix Prefix(const std::string& text);
AddressRange Range(const std::string& text);

// A pool over all of `subnet`, or the given ranges of it.
AddressPool MakePool(const std::string& subnet, const std::vector<std::string>& ranges, int rest_seconds,
                     const std::vector<std::string>& exclusions = {});

// The owner number `i`.
AddressOwner OwnerNumber(int i);

// `seconds` after the boot `boot`.
ClockReading At(double seconds, const std::string& boot = "boot-a");

// RAILHEAD_TEST_SEED, or a new one; printed.
std::uint64_t Seed();

}  // namespace railhead::testing
