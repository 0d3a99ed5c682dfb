// The seed of a random test: the number in RAILHEAD_TEST_SEED, and 1 without it. It is printed.
// A usual run makes the same choices each time, so that a change is judged by itself. tests/run.sh --all
// draws a number.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace railhead::testing {

inline std::uint64_t Seed() {
  const char* given = std::getenv("RAILHEAD_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  (void)std::printf("RAILHEAD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  (void)std::fflush(stdout);
  return seed;
}

}  // namespace railhead::testing
