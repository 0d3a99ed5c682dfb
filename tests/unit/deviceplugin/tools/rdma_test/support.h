// Messages, ends and outcomes for the tests of deviceplugin/tools/rdma_test.
#pragma once

#include <string>

#include "deviceplugin/tools/rdma_test/outcome.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/gid/gid_table.h"

namespace railhead::rdma_test {

inline IpAddress Gid(const char* text) {
  return GidOf(*IpAddress::Parse(text));
}

inline Hello SomeHello() {
  return {"rail0", Gid("10.0.0.1"), 65536, 64, 2, 18, 104, 3};
}

inline Endpoint SomeEndpoint() {
  QueuePairAddress pair;
  pair.number = 0x11;
  pair.psn = 0x123456;
  pair.gid = Gid("10.0.0.2");
  pair.key = 0x01020304;
  pair.address = 0x1122334455667788;
  pair.bytes = 0x12000;
  pair.mtu = 1024;
  return {pair, "mlx5_4", 3};
}

inline Outcome SomeOutcome(std::uint64_t bytes = 125'000'000) {
  Outcome outcome;
  outcome.from = {"mlx5_4", 3, Gid("10.0.0.1")};
  outcome.to = {"mlx5_9", 5, Gid("10.0.0.2")};
  outcome.mtu = 4096;
  outcome.traffic_class = 104;
  outcome.write = {bytes, 1.0};
  outcome.write_latency = {1000, 1.25, 1.5, 2.25, 9.5};
  outcome.send_latency = {900, 1.75, 2, 3, 11};
  return outcome;
}

}  // namespace railhead::rdma_test
