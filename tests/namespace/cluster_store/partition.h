// What partition_test and its nodes agree on.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "ipam/lease/context.h"

namespace railhead::testing {

inline constexpr const char* kPartitionPool = "10.7.0.0/24";
inline constexpr std::uint64_t kPartitionBlockSize = 8;
inline constexpr std::uint64_t kPartitionLowWater = 4;
inline constexpr std::chrono::seconds kPartitionReuseDelay(1);

// As in production, in seconds instead of hours.
inline ipam::LeaseTimes PartitionTimes() {
  return {std::chrono::seconds(1), std::chrono::seconds(6), std::chrono::seconds(20), kPartitionReuseDelay};
}

struct PartitionLine {
  std::uint64_t time_ms = 0;
  std::string node;
  std::string what;
  std::string address;
};

// A line that is still being written is left out.
inline std::vector<PartitionLine> ReadPartitionHistory(const std::string& path) {
  std::vector<PartitionLine> lines;
  std::ifstream file(path);
  PartitionLine line;
  while (file >> line.time_ms >> line.node >> line.what >> line.address) lines.push_back(line);
  return lines;
}

}  // namespace railhead::testing
