// Flood: a pod that sends probes as if from many addresses, as fast as it is asked to.
//
// It is a process of its own, so that its CPU time is not counted as this process's. It has raw sockets in
// the namespace `from` (CAP_NET_RAW, as pods may have), and ends with this object or with this process.
// Threads: one at a time. Errors: failures to set up end the process.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "deviceplugin/services/reachability/udp_socket.h"

namespace railhead::testing {

struct FloodPlan {
  reachability::UdpEnd to;    // IPv4
  IpAddress first;            // of the senders
  std::uint32_t senders = 1;  // consecutive addresses, by turns
  int per_second = 0;         // packets; 0: as many as it can
};

class Flood {
 public:
  Flood(const NetNs& from, const FloodPlan& plan);
  ~Flood();
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  [[nodiscard]] std::uint64_t Sent() const;

 private:
  struct Shared;
  Shared* shared_;
  pid_t child_;
};

}  // namespace railhead::testing
