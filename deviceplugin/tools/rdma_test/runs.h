// The three runs over a connected queue pair: RDMA WRITE bandwidth, WRITE and SEND ping-pong.
//
// The starting end drives, the other one answers. Both busy-wait, as programs with such NICs do, and yield
// the CPU when nothing has come for a while. Ping-pong messages have 8 bytes.
// Threads: one. Errors: those of the queue pair and of `check_peer`, since a waiting end does not notice by
// itself that the other one has ended. Also kTimeout when nothing has happened for `stall`. It must be longer
// than the device's own retries, so that their error comes first.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "deviceplugin/tools/rdma_test/outcome.h"
#include "netns/base/result.h"
#include "netns/verbs/queue_pair.h"

namespace railhead::rdma_test {

struct RunLimits {
  std::chrono::steady_clock::duration duration{};
  std::chrono::steady_clock::duration stall{};
  // Called repeatedly while nothing arrives. Its error ends the run.
  std::function<Result<void>()> check_peer;
};

// Writes of `size` bytes, `depth` in progress. The other end does nothing.
Result<Bandwidth> DriveWriteBandwidth(QueuePair& pair, std::size_t size, int depth, const RunLimits& limits);

// `mail`: offset of kMailBytes in both buffers. Both sides must call ClearMail() before either drives.
void ClearMail(QueuePair& pair, std::size_t mail);
Result<Latency> DriveWriteLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits);
Result<void> AnswerWriteLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits);

// Both sides must call ArmReceive() before either drives.
Result<void> ArmReceive(QueuePair& pair, std::size_t mail);
Result<Latency> DriveSendLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits);
Result<void> AnswerSendLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits);

}  // namespace railhead::rdma_test
