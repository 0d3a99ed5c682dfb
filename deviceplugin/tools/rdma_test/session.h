// The two ends of one test, each in its own process and network namespace, over a channel.
//
// An end that fails tells the other one why, so that the starting end knows it all.
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

// What came of one test, and its way from the process that measured it, as bytes.
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

// Of whole round trips, in any order. The first hundred, or tenth if that is less, are left out:
// caches, neighbours and clock rates come to rest.
Latency LatencyOf(std::vector<std::chrono::nanoseconds> round_trips);

struct Bandwidth {
  std::uint64_t bytes = 0;
  double seconds = 0;
  [[nodiscard]] double GigabitsPerSecond() const {
    return seconds > 0 ? static_cast<double>(bytes) * 8 / seconds / 1e9 : 0;
  }

  static void List(auto& f) {
    f.Shown("gbitPerSecond", &Bandwidth::GigabitsPerSecond);
    f("bytes", &Bandwidth::bytes);
    f("seconds", &Bandwidth::seconds);
  }
};

// One end, as it was in the end chosen.
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

// Of a key file (shared_keys.h), which has to be there; nullptr for "".
Result<std::shared_ptr<const SharedKeys>> ReadKeys(const std::string& path);

// For each step before the runs: opening devices, and the kernel's second for a neighbour.
inline constexpr std::chrono::seconds kHandshake{30};

// How long a whole test can take at most.
std::chrono::seconds LongestTest(const TestParameters& parameters);

Result<Outcome> RunStartingEnd(const Channel& channel, const TestParameters& parameters, const RailEnd& end,
                               const std::optional<IpAddress>& towards);

// `choose` says what to use on the rail that the other end names.
using ChooseRail = std::function<Result<RailEnd>(const std::string& rail)>;
Result<void> RunAnsweringEnd(const Channel& channel, const ChooseRail& choose);

// Where connections wait until they have said which test they want, so that one that says nothing keeps
// nobody waiting.
//
// A connection is ready when its first message is there whole, or will never be: it has gone, or says
// something else. Who takes it reads that message, or finds out what is wrong, without waiting.
// At most kMost wait; then the one that has waited longest goes.
// Ownership: keeps the connections, TCP sockets. Threads: one. Errors: none.

class Lobby {
 public:
  static constexpr std::size_t kMost = 16;

  void Enter(UniqueFd connection, TimePoint until);
  // The one of those who are ready that has waited longest.
  std::optional<UniqueFd> TakeReady();
  // Closes those whose time is over, and those that there is no room for; how many.
  std::size_t Drop(TimePoint now);

  // Readable when it is worth asking TakeReady().
  [[nodiscard]] std::vector<int> fds() const;
  // When there will be something for Drop().
  [[nodiscard]] std::optional<TimePoint> FirstEnd() const;

 private:
  struct Guest {
    UniqueFd connection;
    TimePoint until;
  };
  std::deque<Guest> guests_;  // in the order in which they came
};

// The three runs over a connected queue pair: RDMA WRITE bandwidth, WRITE and SEND ping-pong.
//
// The starting end drives, the other one answers. Both busy-wait, as programs with such NICs do,
// and give the CPU away when nothing has come for a while. Ping-pong messages have 8 bytes.
// Threads: one. Errors: those of the queue pair and of `still_there`, as an end that waits for data
// sees nothing of the other one's going; kTimeout when nothing has happened for `stall`, which is to
// be longer than the device's own retries, so that their error comes first.

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

}  // namespace railhead::rdma_test
