#include "deviceplugin/tools/rdma_test/runs.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace railhead::rdma_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMessage = sizeof(std::uint64_t);
constexpr std::size_t kOut = 0;
constexpr std::size_t kIn = 4096;
constexpr std::uint64_t kLastMessage = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMaxSamples = 1'000'000;
// Idle polls before the thread yields the CPU: some 100 us, far longer than an answer takes.
constexpr int kPatience = 4096;

// One 8-byte message of the buffer, which the device reads and writes.
class Slot {
 public:
  Slot(const QueuePair& pair, std::size_t offset)
      : value_(*reinterpret_cast<std::uint64_t*>(pair.data() + offset)) {}
  [[nodiscard]] std::uint64_t Load() const { return std::atomic_ref(value_).load(std::memory_order_acquire); }
  void Store(std::uint64_t value) { std::atomic_ref(value_).store(value, std::memory_order_release); }

 private:
  std::uint64_t& value_;
};

// The requests in progress, and the time since the last completion.
class Flight {
 public:
  // `limits` outlive it.
  Flight(QueuePair& pair, const RunLimits& limits) : pair_(pair), limits_(limits) {}

  void Sent() { ++sending_; }
  [[nodiscard]] int sending() const { return sending_; }
  // Takes one received message. false: none has arrived.
  bool TakeReceived() {
    if (received_ == 0) return false;
    --received_;
    return true;
  }

  // Polls the completion queue once. Returns how many requests have completed.
  Result<int> Poll() {
    const auto completed = RH_TRY(pair_.Poll());
    sending_ -= completed.sent;
    received_ += completed.received;
    if (completed.sent + completed.received > 0) {
      Restart();
    } else if (++idle_ >= kPatience) {
      idle_ = 0;
      RH_TRY(Pause());
    }
    return completed.sent;
  }
  // Polls until `over`.
  template <typename Condition>
  Result<void> Until(const Condition& over) {
    Restart();
    while (!over()) (void)RH_TRY(Poll());
    return {};
  }
  Result<void> Drain() {
    return Until([this] { return sending_ == 0; });
  }

 private:
  void Restart() {
    idle_ = 0;
    quiet_since_.reset();
  }
  Result<void> Pause() {
    (void)sched_yield();
    RH_TRY(limits_.check_peer());
    const auto now = Clock::now();
    if (!quiet_since_) quiet_since_ = now;
    if (now - *quiet_since_ < limits_.stall) return {};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limits_.stall).count();
    return Fail(ErrorCode::kTimeout,
                "nothing has come from the other end for " + std::to_string(seconds) + " s",
                "its process has stopped, or packets are lost on the way back");
  }

  QueuePair& pair_;
  const RunLimits& limits_;
  std::optional<Clock::time_point> quiet_since_;
  int idle_ = 0;
  int sending_ = 0;
  int received_ = 0;
};

// Round trips until the time is over. `trip` makes the one with the given number.
template <typename Trip>
Result<Latency> Measure(const RunLimits& limits, const Trip& trip) {
  std::vector<std::chrono::nanoseconds> trips;
  const auto end = Clock::now() + limits.duration;
  for (auto start = Clock::now(); start < end && trips.size() < kMaxSamples; start = Clock::now()) {
    const Clock::time_point back = RH_TRY(trip(trips.size() + 1));
    trips.push_back(back - start);
  }
  return LatencyOf(std::move(trips));
}

}  // namespace

Result<Bandwidth> DriveWriteBandwidth(QueuePair& pair, std::size_t size, int depth, const RunLimits& limits) {
  Flight flight(pair, limits);
  Bandwidth done;
  const auto start = Clock::now();
  const auto end = start + limits.duration;
  while (Clock::now() < end) {
    for (; flight.sending() < depth; flight.Sent()) RH_TRY(pair.PostWrite(0, 0, size));
    done.bytes += static_cast<std::uint64_t>(RH_TRY(flight.Poll())) * size;
  }
  const int left = flight.sending();
  RH_TRY(flight.Drain());
  done.bytes += static_cast<std::uint64_t>(left) * size;
  done.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return done;
}

void ClearMail(QueuePair& pair, std::size_t mail) {
  Slot(pair, mail + kOut).Store(0);
  Slot(pair, mail + kIn).Store(0);
}

Result<Latency> DriveWriteLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits) {
  Flight flight(pair, limits);
  Slot out(pair, mail + kOut);
  const Slot in(pair, mail + kIn);
  const auto write = [&](std::uint64_t message) -> Result<void> {
    out.Store(message);
    flight.Sent();
    return pair.PostWrite(mail + kOut, mail + kIn, kMessage);
  };
  const auto trip = [&](std::uint64_t number) -> Result<Clock::time_point> {
    RH_TRY(write(number));
    RH_TRY(flight.Until([&] { return in.Load() == number; }));
    const auto back = Clock::now();
    RH_TRY(flight.Drain());
    return back;
  };
  const Latency latency = RH_TRY(Measure(limits, trip));
  RH_TRY(write(kLastMessage));
  RH_TRY(flight.Drain());
  return latency;
}

Result<void> AnswerWriteLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits) {
  Flight flight(pair, limits);
  Slot out(pair, mail + kOut);
  const Slot in(pair, mail + kIn);
  for (std::uint64_t number = 1;; ++number) {
    std::uint64_t seen = 0;
    RH_TRY(flight.Until([&] {
      seen = in.Load();
      return seen == number || seen == kLastMessage;
    }));
    if (seen == kLastMessage) return {};
    out.Store(number);
    RH_TRY(pair.PostWrite(mail + kOut, mail + kIn, kMessage));
    flight.Sent();
    RH_TRY(flight.Drain());
  }
}

Result<void> ArmReceive(QueuePair& pair, std::size_t mail) {
  return pair.PostReceive(mail + kIn, kMessage);
}

Result<Latency> DriveSendLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits) {
  Flight flight(pair, limits);
  Slot out(pair, mail + kOut);
  const auto send = [&](std::uint64_t message) -> Result<void> {
    out.Store(message);
    flight.Sent();
    return pair.PostSend(mail + kOut, kMessage);
  };
  const auto trip = [&](std::uint64_t number) -> Result<Clock::time_point> {
    RH_TRY(send(number));
    RH_TRY(flight.Until([&] { return flight.TakeReceived(); }));
    const auto back = Clock::now();
    // Before the next ping, so that its answer finds it.
    RH_TRY(ArmReceive(pair, mail));
    RH_TRY(flight.Drain());
    return back;
  };
  const Latency latency = RH_TRY(Measure(limits, trip));
  RH_TRY(send(kLastMessage));
  RH_TRY(flight.Drain());
  return latency;
}

Result<void> AnswerSendLatency(QueuePair& pair, std::size_t mail, const RunLimits& limits) {
  Flight flight(pair, limits);
  Slot out(pair, mail + kOut);
  const Slot in(pair, mail + kIn);
  for (;;) {
    RH_TRY(flight.Until([&] { return flight.TakeReceived(); }));
    const std::uint64_t message = in.Load();
    if (message == kLastMessage) return {};
    RH_TRY(ArmReceive(pair, mail));
    out.Store(message);
    RH_TRY(pair.PostSend(mail + kOut, kMessage));
    flight.Sent();
    RH_TRY(flight.Drain());
  }
}

}  // namespace railhead::rdma_test
