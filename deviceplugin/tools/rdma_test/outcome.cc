#include "deviceplugin/tools/rdma_test/outcome.h"

#include <bit>
#include <cstdint>

#include "deviceplugin/tools/rdma_test/bytes.h"

namespace railhead::rdmatest {
namespace {

constexpr std::size_t kMaxDeviceName = 64;

void Put(ByteWriter& to, double number) {
  to.Put(std::bit_cast<std::uint64_t>(number));
}
double GetDouble(ByteReader& from) {
  return std::bit_cast<double>(from.Get<std::uint64_t>());
}

void Put(ByteWriter& to, const UsedEnd& end) {
  to.PutText(end.device);
  to.Put(static_cast<std::uint32_t>(end.gid_index));
  to.PutGid(end.gid);
}
UsedEnd GetEnd(ByteReader& from) {
  UsedEnd end;
  end.device = from.GetText(kMaxDeviceName);
  end.gid_index = static_cast<int>(from.Get<std::uint32_t>());
  end.gid = from.GetGid();
  return end;
}

void Put(ByteWriter& to, const Latency& latency) {
  to.Put(latency.samples);
  Put(to, latency.min_us);
  Put(to, latency.median_us);
  Put(to, latency.p99_us);
  Put(to, latency.max_us);
}
Latency GetLatency(ByteReader& from) {
  Latency latency;
  latency.samples = from.Get<std::uint64_t>();
  latency.min_us = GetDouble(from);
  latency.median_us = GetDouble(from);
  latency.p99_us = GetDouble(from);
  latency.max_us = GetDouble(from);
  return latency;
}

}  // namespace

std::string EncodeOutcome(const Outcome& outcome) {
  ByteWriter to;
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
  ByteReader from(bytes);
  Outcome outcome;
  outcome.from = GetEnd(from);
  outcome.to = GetEnd(from);
  outcome.mtu = static_cast<int>(from.Get<std::uint32_t>());
  outcome.traffic_class = static_cast<int>(from.Get<std::uint32_t>());
  outcome.write.bytes = from.Get<std::uint64_t>();
  outcome.write.seconds = GetDouble(from);
  outcome.write_latency = GetLatency(from);
  outcome.send_latency = GetLatency(from);
  if (from.Whole()) return outcome;
  return Fail(ErrorCode::kMalformed, "the process of one end told no whole outcome");
}

}  // namespace railhead::rdmatest
