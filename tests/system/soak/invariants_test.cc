#include "tests/system/soak/invariants.h"

#include <gtest/gtest.h>

namespace railhead::soak {
namespace {

std::vector<Use> Descriptors(std::initializer_list<long> counts) {
  std::vector<Use> samples;
  for (const long count : counts) samples.push_back({8192, 10, count});
  return samples;
}

TEST(GrowsTest, ADescriptorLeftByEachWaveIsFound) {
  EXPECT_TRUE(Grows(Descriptors({23, 25, 27, 29, 31, 33, 35, 37, 39, 41})));
}

TEST(GrowsTest, ABusyLastWaveIsNoGrowth) {
  EXPECT_FALSE(Grows(Descriptors({23, 33, 30, 31, 40})));
  EXPECT_FALSE(Grows(Descriptors({23, 33, 30, 31, 32, 30, 29, 33, 40})));
}

TEST(GrowsTest, MemoryAndThreadsAreJudgedEachForItself) {
  std::vector<Use> memory;
  std::vector<Use> threads;
  for (int wave = 0; wave < 16; ++wave) {
    memory.push_back({8192 + wave * 4096L, 10, 30});
    threads.push_back({8192, 10 + wave, 30});
  }
  EXPECT_TRUE(Grows(memory));
  EXPECT_TRUE(Grows(threads));
}

}  // namespace
}  // namespace railhead::soak
