// What partition_test and its nodes agree on.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace railhead::testing {

// Blocks of eight addresses: an index's are few, so that its next node soon gives those of the former one.
inline constexpr const char* kPartitionFabric = R"({"version": 1,
    "rails": [{"name": "rail0", "pf": 0, "subnet": "10.7.0.0/22", "nodeBlock": 29}],
    "addresses": {"reuseDelaySeconds": 1, "index": {"from": "kubernetes"}}})";
// As in production, in seconds instead of hours.
inline constexpr std::chrono::seconds kPartitionFence(6);
inline constexpr std::chrono::seconds kPartitionReclaim(20);
inline constexpr std::chrono::seconds kPartitionReuseDelay(1);
inline constexpr std::chrono::seconds kPartitionTimeout(2);  // of a request

struct PartitionLine {
  std::uint64_t time_ms = 0;
  std::string node;
  std::string what;
  std::string subject;
};

// A line that is still being written is left out.
inline std::vector<PartitionLine> ReadPartitionHistory(const std::string& path) {
  std::vector<PartitionLine> lines;
  std::ifstream file(path);
  PartitionLine line;
  while (file >> line.time_ms >> line.node >> line.what >> line.subject) lines.push_back(line);
  return lines;
}

}  // namespace railhead::testing
