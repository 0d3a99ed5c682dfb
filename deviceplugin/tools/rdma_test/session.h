// The two ends of one test, each in its own process and network namespace, over a channel.
//
// An end that fails sends its error to the other one, so that the starting end has all errors.
// Threads: one each. Errors: those of device, queue pair, channel and runs; every wait is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/plan.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/verbs/queue_pair.h"

namespace railhead::rdma_test {

// The outcome of one test, and its encoding for the pipe from the process that measured it.
// Threads: values and pure functions. Errors: kMalformed.

// Figures of a run. Latencies are half of a round trip, as perftest counts them.
// Threads: pure functions. Units: in the names.

struct Latency {
  std::uint64_t samples = 0;
  double min_us = 0;
  double median_us = 0;
  double p99_us = 0;
  double max_us = 0;

  static void List(auto& f) {
    f("samples", &Latency::samples);
    f("minUs", &Latency::min_us);
    f("medianUs", &Latency::median_us);
    f("p99Us", &Latency::p99_us);
    f("maxUs", &Latency::max_us);
  }
};

// From whole round trips, in any order. It skips the first hundred, or the first tenth if that is less: until
// then caches, neighbours and clock rates are not stable.
Latency LatencyOf(std::vector<std::chrono::nanoseconds> round_trips);

struct Bandwidth {
  std::uint64_t bytes = 0;
  double seconds = 0;
  [[nodiscard]] double GigabitsPerSecond() const {
    return seconds > 0 ? static_cast<double>(bytes) * 8 / seconds / 1e9 : 0;
  }

  static void List(auto& f) {
    f.Output("gbitPerSecond", &Bandwidth::GigabitsPerSecond);
    f("bytes", &Bandwidth::bytes);
    f("seconds", &Bandwidth::seconds);
  }
};

// The device and GID that one end used.
struct UsedEnd {
  std::string device;
  int gid_index = 0;
  IpAddress gid;

  static void List(auto& f) {
    f("device", &UsedEnd::device);
    f("gidIndex", &UsedEnd::gid_index);
    f("gid", &UsedEnd::gid);
  }
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

struct TestParameters {
  std::uint32_t size = 65536;
  int depth = 64;
  int seconds = 2;                                   // of each run
  int timeout = 18;                                  // of the queue pairs, see QueuePairSettings
  std::shared_ptr<const SharedKeys> keys = nullptr;  // for tests with another node; nullptr: none
};

// Reads a key file (shared_keys.h), which must exist; nullptr for "".
Result<std::shared_ptr<const SharedKeys>> ReadKeys(const std::string& path);

// The limit of each step before the runs: opening devices, and the kernel's second for a neighbour.
inline constexpr std::chrono::seconds kHandshake{30};

// The longest possible duration of a whole test.
std::chrono::seconds LongestTest(const TestParameters& parameters);

Result<Outcome> RunStartingEnd(const Channel& channel, const TestParameters& parameters, const RailEnd& end,
                               const std::optional<IpAddress>& towards);

// `choose` returns the device for the rail that the other end names.
using ChooseRail = std::function<Result<RailEnd>(const std::string& rail)>;
Result<void> RunAnsweringEnd(const Channel& channel, const ChooseRail& choose);

// PendingConnections: connections whose request is not complete, so that a silent one delays no other.
//
// A connection is ready when its first message is complete, or cannot become complete: the peer closed it or
// sent something else. The caller can then read its message, or the error, without waiting. At most kMost
// connections wait; beyond that the oldest one is closed. Ownership: owns the connections, TCP sockets.
// Threads: one. Errors: none.

class PendingConnections {
 public:
  static constexpr std::size_t kMost = 16;

  void Add(UniqueFd connection, TimePoint until);
  // The oldest connection that is ready.
  std::optional<UniqueFd> TakeReady();
  // Closes connections whose time is over, and those beyond kMost. Returns how many.
  std::size_t DropExpired(TimePoint now);

  // Readable when TakeReady() may have one.
  [[nodiscard]] std::vector<int> fds() const;
  // When DropExpired() will close the next one.
  [[nodiscard]] std::optional<TimePoint> NextDeadline() const;

 private:
  struct Entry {
    UniqueFd connection;
    TimePoint until;
  };
  std::deque<Entry> entries_;  // oldest first
};

// The three runs over a connected queue pair: RDMA WRITE bandwidth, WRITE and SEND ping-pong.
//
// The starting end drives, the other one answers. Both busy-wait, as programs with such NICs do, and yield
// the CPU when nothing has come for a while. Ping-pong messages have 8 bytes.
// Threads: one. Errors: those of the queue pair and of `check_peer`, since a waiting end does not notice by
// itself that the other one has ended. Also kTimeout when nothing has happened for `stall`. It must be longer
// than the device's own retries, so that their error comes first.

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
