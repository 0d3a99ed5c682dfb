#include "deviceplugin/tools/rdma_test/test_runner.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "deviceplugin/tools/rdma_test/end_process.h"
#include "deviceplugin/tools/rdma_test/frame_seal.h"
#include "deviceplugin/tools/rdma_test/interrupts.h"
#include "deviceplugin/tools/rdma_test/outcome.h"
#include "deviceplugin/tools/rdma_test/pending_connections.h"
#include "deviceplugin/tools/rdma_test/session.h"
#include "netns/ns/netns.h"

namespace railhead::rdma_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectLimit{10};
// The time that an end gets to report the cause, when the other one has only seen its effect.
constexpr std::chrono::milliseconds kGrace{500};
// An answering end does not know the duration of the test before its request arrives.
constexpr std::chrono::hours kLongestAnswer{4};

tl::unexpected<Error> Interrupted() {
  return Fail(ErrorCode::kBusy, kInterrupted);
}

// Waits until one of `fds` is readable; nullopt at the deadline. The signals' descriptor comes first.
Result<std::optional<std::size_t>> WaitReadable(const Interrupts& interrupts, std::vector<int> fds,
                                                TimePoint deadline) {
  fds.insert(fds.begin(), interrupts.fd());
  std::vector<pollfd> waiting;
  waiting.reserve(fds.size());
  for (const int fd : fds) waiting.push_back({fd, POLLIN, 0});
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
    const int ready = poll(waiting.data(), waiting.size(), timeout);
    if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for the ends of the test");
    if (ready == 0 && left <= timeout) return std::nullopt;
    if (ready <= 0) continue;
    if (waiting[0].revents != 0) return Interrupted();
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) return i - 1;
    }
  }
}

struct Watched {
  EndProcess* process = nullptr;
  std::string name;
  std::optional<Result<std::string>> result;
};

std::vector<Watched*> Running(std::vector<Watched>& ends) {
  std::vector<Watched*> running;
  for (Watched& end : ends) {
    if (!end.result) running.push_back(&end);
  }
  return running;
}

bool AnyFailed(const std::vector<Watched>& ends) {
  return std::ranges::any_of(ends, [](const Watched& end) { return end.result && !*end.result; });
}

// Waits until all have ended. After a failure the others get a short time to report the cause.
Result<void> AwaitEnds(std::vector<Watched>& ends, const Interrupts& interrupts, TimePoint deadline) {
  TimePoint until = deadline;
  for (auto running = Running(ends); !running.empty(); running = Running(ends)) {
    std::vector<int> fds;
    fds.reserve(running.size());
    for (const Watched* end : running) fds.push_back(end->process->fd());
    const auto ready = RH_TRY(WaitReadable(interrupts, fds, until));
    if (!ready && AnyFailed(ends)) return {};
    if (!ready) {
      return Fail(ErrorCode::kTimeout, "the test did not end in time",
                  "the ends were stopped; try a shorter --duration");
    }
    Watched& end = *running[*ready];
    end.result = end.process->Read();
    if (end.result && !*end.result) until = std::min(deadline, Clock::now() + kGrace);
  }
  return {};
}

// The error of the end that knows the cause, with that end's name.
Error WorstOf(const std::vector<Watched>& ends) {
  const Watched* worst = nullptr;
  for (const Watched& end : ends) {
    if (!end.result || *end.result) continue;
    if (worst == nullptr || (IsFromPeer(worst->result->error()) && !IsFromPeer(end.result->error()))) {
      worst = &end;
    }
  }
  return Wrap(worst->result->error(), worst->name);
}

Result<std::optional<NetNs>> NamespaceOf(const TestEnd& end) {
  if (end.netns.empty()) return std::nullopt;
  return std::optional<NetNs>(RH_TRY_WRAP(NetNs::Open(end.netns), end.name));
}

Result<UniqueFd> TcpSocket(const http::HttpAddress& address) {
  UniqueFd fd(socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FailSys(errno, "making a TCP socket");
  return fd;
}

Result<UniqueFd> ConnectTo(const std::string& where, const Interrupts& interrupts) {
  const http::HttpAddress address = RH_TRY(http::ParseHttpAddress(where));
  UniqueFd fd = RH_TRY(TcpSocket(address));
  const std::string what = "connecting to " + where;
  constexpr char kHint[] = "run `railctl rdma-test --listen ADDRESS:PORT END` on that node first";
  const auto refused = [&](int failed) {
    Error error = SysError(failed, what);
    error.hint = kHint;
    return Fail(std::move(error));
  };
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) != 0 &&
      errno != EINPROGRESS) {
    return refused(errno);
  }
  const auto end = Clock::now() + kConnectLimit;
  for (;;) {
    pollfd waiting[] = {{interrupts.fd(), POLLIN, 0}, {fd.get(), POLLOUT, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    const int ready = poll(waiting, 2, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno != EINTR) return FailSys(errno, what);
    if (ready > 0 && waiting[0].revents != 0) return Interrupted();
    if (ready > 0) break;
    if (left <= 0) return refused(ETIMEDOUT);
  }
  int failed = 0;
  socklen_t size = sizeof(failed);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size) != 0) return FailSys(errno, what);
  if (failed != 0) return refused(failed);
  const int on = 1;
  (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

// Forks the starting end. It keeps `channel`, and closes `others`.
Result<EndProcess> ForkStarting(const TestEnd& end, UniqueFd channel, UniqueFd* others,
                                const PlannedTest& test, const TestParameters& parameters,
                                const std::shared_ptr<const SharedKeys>& keys) {
  const auto ns = RH_TRY(NamespaceOf(end));
  return EndProcess::Start(ns ? &*ns : nullptr, [&]() -> Result<std::string> {
    others->Reset();
    const Channel to(std::move(channel), keys, EndRole::kStarting);
    const Outcome outcome = RH_TRY(RunStartingEnd(to, parameters, test.from_rail, test.to_rail.address));
    return EncodeOutcome(outcome);
  });
}

Result<EndProcess> ForkAnswering(const TestEnd& end, UniqueFd channel,
                                 const std::shared_ptr<const SharedKeys>& keys, const ChooseRail& choose) {
  const auto ns = RH_TRY(NamespaceOf(end));
  return EndProcess::Start(ns ? &*ns : nullptr, [&]() -> Result<std::string> {
    const Channel to(std::move(channel), keys, EndRole::kAnswering);
    RH_TRY(RunAnsweringEnd(to, choose));
    return std::string();
  });
}

Result<Outcome> OutcomeOf(std::vector<Watched>& ends, const Interrupts& interrupts, TimePoint deadline) {
  RH_TRY(AwaitEnds(ends, interrupts, deadline));
  if (AnyFailed(ends)) return Fail(WorstOf(ends));
  return DecodeOutcome(**ends.front().result);
}

Result<Outcome> RunHere(const TestEnd& from, const TestEnd& to, const PlannedTest& test,
                        const TestParameters& parameters, const Interrupts& interrupts) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return FailSys(errno, "making a socket pair");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  EndProcess starting = RH_TRY(ForkStarting(from, std::move(ours), &theirs, test, parameters, nullptr));
  EndProcess answering = RH_TRY(ForkAnswering(
      to, std::move(theirs), nullptr, [&](const std::string&) -> Result<RailEnd> { return test.to_rail; }));
  std::vector<Watched> watched = {{&starting, from.name, std::nullopt}, {&answering, to.name, std::nullopt}};
  return OutcomeOf(watched, interrupts, Clock::now() + LongestTest(parameters));
}

Result<Outcome> RunWithOtherNode(const TestEnd& from, const TestEnd& to, const PlannedTest& test,
                                 const TestParameters& parameters, const Interrupts& interrupts) {
  UniqueFd connection = RH_TRY(ConnectTo(to.remote, interrupts));
  UniqueFd none;
  EndProcess starting =
      RH_TRY(ForkStarting(from, std::move(connection), &none, test, parameters, parameters.keys));
  std::vector<Watched> watched = {{&starting, from.name, std::nullopt}};
  return OutcomeOf(watched, interrupts, Clock::now() + LongestTest(parameters));
}

Result<UniqueFd> ListeningSocket(const http::HttpAddress& address) {
  UniqueFd fd = RH_TRY(TcpSocket(address));
  const int on = 1;
  const std::string what = "listening at " + ToString(address);
  if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) != 0 ||
      listen(fd.get(), 16) != 0) {
    Error error = SysError(errno, what);
    if (error.sys_errno == EADDRNOTAVAIL)
      error.hint = "give an address that this node has in the cluster network";
    return Fail(std::move(error));
  }
  return fd;
}

Result<void> WasSilent() {
  return Fail(ErrorCode::kTimeout, "the connected peer did not state which test it wants",
              "is it railctl rdma-test?");
}

// Runs one test with the connected peer.
Result<void> Serve(const TestEnd& end, const ListenOptions& options, UniqueFd connection,
                   const Interrupts& interrupts) {
  EndProcess answering =
      RH_TRY(ForkAnswering(end, std::move(connection), options.keys,
                           [&](const std::string& rail) { return RailOf(end, rail, options.plan); }));
  std::vector<Watched> watched = {{&answering, end.name, std::nullopt}};
  RH_TRY(AwaitEnds(watched, interrupts, Clock::now() + kLongestAnswer));
  if (AnyFailed(watched)) return Fail(WorstOf(watched));
  return {};
}

}  // namespace

Result<Outcome> RunTest(const TestEnd& from, const TestEnd& to, const PlannedTest& test,
                        const TestParameters& parameters, const Interrupts& interrupts) {
  if (to.remote.empty()) return RunHere(from, to, test, parameters, interrupts);
  return RunWithOtherNode(from, to, test, parameters, interrupts);
}

Result<Served> Listen(const TestEnd& end, const ListenOptions& options, const Interrupts& interrupts,
                      const std::function<void(const Result<void>& test)>& tell) {
  const UniqueFd socket = RH_TRY(ListeningSocket(options.address));
  Served served;
  PendingConnections pending;
  const auto count = [&](const Result<void>& test) {
    ++served.tests;
    if (!test) ++served.failed;
    tell(test);
  };
  for (TimePoint until = Clock::now() + options.wait;;) {
    while (auto ready_connection = pending.TakeReady()) {
      const Result<void> test = Serve(end, options, std::move(*ready_connection), interrupts);
      if (!test && test.error().message == kInterrupted) return served;
      count(test);
      until = Clock::now() + options.wait;
    }
    for (std::size_t left = pending.DropExpired(Clock::now()); left > 0; --left) count(WasSilent());
    std::vector<int> fds = pending.fds();
    fds.push_back(socket.get());
    const auto ready = WaitReadable(interrupts, fds, std::min(until, pending.NextDeadline().value_or(until)));
    if (!ready && ready.error().message == kInterrupted) return served;
    if (!ready) return Fail(ready.error());
    if (!*ready && Clock::now() >= until) return served;
    // Accept every connection at once, so that a silent peer keeps no other out.
    UniqueFd connection(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) continue;  // no new connection, or it has closed again
    pending.Add(std::move(connection), Clock::now() + kHandshake);
    until = Clock::now() + options.wait;
  }
}

}  // namespace railhead::rdma_test
