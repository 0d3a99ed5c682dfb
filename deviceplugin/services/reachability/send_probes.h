// SendProbes: sends probes to many endpoints and collects the answers that come within a limit.
//
// It sends a few at a time, so that no buffer of this node drops them, and receives answers between.
// Threads: one at a time; the caller owns the sockets. Errors: kIo where poll fails; a packet that cannot be
// sent counts as one without an answer.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "deviceplugin/services/reachability/udp_socket.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/result.h"

namespace railhead::reachability {

struct Probe {
  int socket = -1;
  UdpEnd to;
  std::uint64_t session = 0;
  std::size_t packet = 0;  // bytes with the IP header; 0: the smallest
  // Set by SendProbes().
  bool too_large = false;  // the own device refuses it
  std::optional<std::chrono::microseconds> rtt;
  std::uint32_t heard = 0;       // ProbeMessage's, with an answer
  std::uint32_t queue_pair = 0;  // the same
};

// Ends when all probes have an answer, or `limit` after the last was sent. With `keys`, probes are signed and
// only signed answers count (CheckProbe). nullptr: no keys.
Result<void> SendProbes(std::vector<Probe>* probes, std::chrono::milliseconds limit,
                        const SharedKeys* keys = nullptr);

}  // namespace railhead::reachability
