// What came of one test, and its way from the process that measured it, as bytes.
// Threads: values and pure functions. Errors: kMalformed.
#pragma once

#include <string>

#include "deviceplugin/tools/rdma_test/statistics.h"
#include "netns/base/ip_address.h"
#include "netns/base/result.h"

namespace railhead::rdmatest {

// One end, as it was in the end chosen.
struct UsedEnd {
  std::string device;
  int gid_index = 0;
  IpAddress gid;
};

struct Outcome {
  UsedEnd from;
  UsedEnd to;
  int mtu = 0;  // of the path, payload of a packet
  int traffic_class = 0;
  Bandwidth write;
  Latency write_latency;
  Latency send_latency;
};

std::string EncodeOutcome(const Outcome& outcome);
Result<Outcome> DecodeOutcome(const std::string& bytes);

}  // namespace railhead::rdmatest
