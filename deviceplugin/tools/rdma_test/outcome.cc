#include "deviceplugin/tools/rdma_test/outcome.h"

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/base/bytes.h"
#include "netns/gid/gid_table.h"

namespace railhead::rdma_test {
namespace {

using railhead::bytes::Reader;
using railhead::bytes::Writer;

constexpr std::size_t kMaxDeviceName = 64;

void Put(Writer& to, double number) {
  to.Put(std::bit_cast<std::uint64_t>(number));
}
double GetDouble(Reader& from) {
  return std::bit_cast<double>(from.Number<std::uint64_t>());
}

void Put(Writer& to, const UsedEnd& end) {
  to.PutText<std::uint16_t>(end.device);
  to.Put(static_cast<std::uint32_t>(end.gid_index));
  to.PutRaw(GidOf(end.gid));
}
UsedEnd GetEnd(Reader& from) {
  UsedEnd end;
  end.device = from.Text<std::uint16_t>(kMaxDeviceName);
  end.gid_index = static_cast<int>(from.Number<std::uint32_t>());
  end.gid = from.Address(kGidSize);
  return end;
}

void Put(Writer& to, const Latency& latency) {
  to.Put(latency.samples);
  Put(to, latency.min_us);
  Put(to, latency.median_us);
  Put(to, latency.p99_us);
  Put(to, latency.max_us);
}
Latency GetLatency(Reader& from) {
  Latency latency;
  latency.samples = from.Number<std::uint64_t>();
  latency.min_us = GetDouble(from);
  latency.median_us = GetDouble(from);
  latency.p99_us = GetDouble(from);
  latency.max_us = GetDouble(from);
  return latency;
}

}  // namespace

std::string EncodeOutcome(const Outcome& outcome) {
  Writer to;
  Put(to, outcome.from);
  Put(to, outcome.to);
  to.Put(static_cast<std::uint32_t>(outcome.mtu));
  to.Put(static_cast<std::uint32_t>(outcome.traffic_class));
  to.Put(outcome.write.bytes);
  Put(to, outcome.write.seconds);
  Put(to, outcome.write_latency);
  Put(to, outcome.send_latency);
  return to.bytes();
}

Result<Outcome> DecodeOutcome(const std::string& bytes) {
  Reader from(bytes);
  Outcome outcome;
  outcome.from = GetEnd(from);
  outcome.to = GetEnd(from);
  outcome.mtu = static_cast<int>(from.Number<std::uint32_t>());
  outcome.traffic_class = static_cast<int>(from.Number<std::uint32_t>());
  outcome.write.bytes = from.Number<std::uint64_t>();
  outcome.write.seconds = GetDouble(from);
  outcome.write_latency = GetLatency(from);
  outcome.send_latency = GetLatency(from);
  if (from.Done()) return outcome;
  return Fail(ErrorCode::kMalformed, "the process of one end sent an incomplete outcome");
}

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
  std::ranges::sort(round_trips);
  // The nearest rank: the smallest that at least this share of all does not exceed.
  const auto rank = [&](std::size_t percent) {
    const std::size_t position = (round_trips.size() * percent + 99) / 100;
    return HalfInMicroseconds(round_trips[std::max<std::size_t>(position, 1) - 1]);
  };
  return {round_trips.size(), rank(0), rank(50), rank(99), rank(100)};
}

}  // namespace railhead::rdma_test
