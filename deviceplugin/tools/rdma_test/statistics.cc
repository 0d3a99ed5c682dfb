#include "deviceplugin/tools/rdma_test/statistics.h"

#include <algorithm>

namespace railhead::rdmatest {
namespace {

constexpr std::size_t kWarmUp = 100;
constexpr std::size_t kWarmUpPart = 10;

double HalfInMicroseconds(std::chrono::nanoseconds round_trip) {
  return static_cast<double>(round_trip.count()) / 2 / 1000;
}

}  // namespace

Latency LatencyOf(std::vector<std::chrono::nanoseconds> round_trips) {
  const std::size_t skipped = std::min(kWarmUp, round_trips.size() / kWarmUpPart);
  round_trips.erase(round_trips.begin(), round_trips.begin() + static_cast<std::ptrdiff_t>(skipped));
  if (round_trips.empty()) return {};
  std::sort(round_trips.begin(), round_trips.end());
  // The nearest rank: the smallest that at least this share of all does not exceed.
  const auto rank = [&](std::size_t percent) {
    const std::size_t position = (round_trips.size() * percent + 99) / 100;
    return HalfInMicroseconds(round_trips[std::max<std::size_t>(position, 1) - 1]);
  };
  return {round_trips.size(), rank(0), rank(50), rank(99), rank(100)};
}

}  // namespace railhead::rdmatest
