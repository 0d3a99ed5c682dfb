// The three runs over a connected queue pair: RDMA WRITE bandwidth, WRITE and SEND ping-pong.
//
// The starting end drives, the other one answers. Both busy-wait, as programs with such NICs do,
// and give the CPU away when nothing has come for a while. Ping-pong messages have 8 bytes.
// Threads: one. Errors: those of the queue pair and of `still_there`, as an end that waits for data
// sees nothing of the other one's going; kTimeout when nothing has happened for `stall`, which is to
// be longer than the device's own retries, so that their error comes first.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "deviceplugin/tools/rdma_test/outcome.h"
#include "netns/base/result.h"
#include "netns/verbs/queue_pair.h"

namespace railhead::rdmatest {

struct RunLimits {
  std::chrono::steady_clock::duration duration{};
  std::chrono::steady_clock::duration stall{};
  // Asked again and again while nothing comes; its error ends the run.
  std::function<Result<void>()> still_there;
};

// Writes of `size` bytes, `depth` in flight. The other end has nothing to do.
Result<Bandwidth> DriveWriteBandwidth(QueuePair& pair, std::size_t size, int depth, const RunLimits& limits);

// `mail`: offset of kMailBytes in both buffers. Clear() on both sides comes before either drives.
void ClearMail(QueuePair& pair, std::size_t mail);
Result<Latency> DriveWriteLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits);
Result<void> AnswerWriteLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits);

// ArmReceive() on both sides comes before either drives.
Result<void> ArmReceive(QueuePair& pair, std::size_t mail);
Result<Latency> DriveSendLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits);
Result<void> AnswerSendLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits);

}  // namespace railhead::rdmatest
