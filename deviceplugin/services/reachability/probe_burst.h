// Volley: probes to many stations at once, and what came back within a limit.
//
// It sends a few at a time, so that no buffer of this node drops them, and takes answers meanwhile.
// Threads: one at a time; sockets are the caller's (udp_socket.h). Errors: kIo where poll fails; a packet
// that cannot be sent counts as one without an answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "deviceplugin/services/reachability/udp_socket.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/result.h"

namespace railhead {

struct Shot {
  int socket = -1;
  UdpEnd to;
  std::uint64_t session = 0;
  std::size_t packet = 0;  // bytes with the IP header; 0: the smallest
  // Set by Fire().
  bool too_large = false;  // the own device does not take it
  std::optional<std::chrono::microseconds> rtt;
  std::uint32_t heard = 0;       // ProbeMessage's, with an answer
  std::uint32_t queue_pair = 0;  // the same
};

// Ends when all have an answer, or `limit` after the last was sent. With `keys` probes are signed, and
// answers count that are (CheckProbe); nullptr: there are none.
Result<void> Fire(std::vector<Shot>* shots, std::chrono::milliseconds limit,
                  const SharedKeys* keys = nullptr);

}  // namespace railhead
