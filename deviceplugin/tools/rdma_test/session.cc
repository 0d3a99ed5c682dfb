#include "deviceplugin/tools/rdma_test/session.h"

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "deviceplugin/tools/rdma_test/choose_endpoint.h"
#include "deviceplugin/tools/rdma_test/outcome.h"
#include "deviceplugin/tools/rdma_test/plan.h"
#include "deviceplugin/tools/rdma_test/runs.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "netns/gid/gid_table.h"

namespace railhead::rdma_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSlack{10};
constexpr int kRetriesAndFirst = 8;
constexpr int kRuns = 3;

// Longer than the device's own retries.
std::chrono::seconds StallOf(int timeout) {
  const std::chrono::nanoseconds one(std::int64_t{4096} << timeout);
  return std::chrono::ceil<std::chrono::seconds>(kRetriesAndFirst * one) + kSlack;
}

// `channel` outlives them.
RunLimits LimitsOf(const Hello& hello, const Channel& channel) {
  return {std::chrono::seconds(hello.seconds), StallOf(hello.timeout),
          [&channel] { return channel.CheckPeer(); }};
}

TimePoint HandshakeEnd() {
  return Clock::now() + kHandshake;
}
TimePoint RunEnd(const Hello& hello) {
  return Clock::now() + std::chrono::seconds(hello.seconds) + 2 * StallOf(hello.timeout);
}

std::size_t MailOf(const Hello& hello) {
  // Slots are of 8 bytes, at the start of a page.
  return (std::size_t{hello.size} + 4095) / 4096 * 4096;
}

// The other end sends the settings that this end does not have.
Result<QueuePair> MakeQueuePair(const ChosenEndpoint& chosen, const Hello& hello, const RailEnd& end) {
  QueuePairSettings settings;
  settings.depth = hello.depth;
  settings.bytes = MailOf(hello) + kMailBytes;
  settings.gid = chosen.gid;
  settings.traffic_class = end.traffic_class.value_or(hello.traffic_class);
  settings.service_level = end.service_level.value_or(hello.service_level);
  settings.timeout = hello.timeout;
  return QueuePair::Create(chosen.device, settings);
}

Endpoint EndpointOf(const ChosenEndpoint& chosen, const QueuePair& pair) {
  return {pair.Address(), chosen.device.name(), static_cast<std::uint8_t>(chosen.gid.index)};
}

UsedEnd UsedOf(const Endpoint& endpoint) {
  return {endpoint.device, endpoint.gid_index, endpoint.queue_pair.gid};
}

Result<void> StartRun(const Channel& channel, RunKind kind, const Hello& hello) {
  RH_TRY(channel.Send(Run{kind}, RunEnd(hello)));
  RH_TRY(channel.Expect<Ready>(RunEnd(hello)));
  return {};
}

Result<void> MeasureWith(const Channel& channel, QueuePair& pair, const Hello& hello, Outcome* outcome) {
  const RunLimits limits = LimitsOf(hello, channel);
  const std::size_t mail = MailOf(hello);
  RH_TRY(StartRun(channel, RunKind::kWriteBandwidth, hello));
  outcome->write = RH_TRY(DriveWriteBandwidth(pair, hello.size, hello.depth, limits));
  RH_TRY(channel.Send(Done{}, RunEnd(hello)));

  ClearMail(pair, mail);
  RH_TRY(StartRun(channel, RunKind::kWriteLatency, hello));
  outcome->write_latency = RH_TRY(DriveWriteLatency(pair, mail, limits));
  RH_TRY(channel.Send(Done{}, RunEnd(hello)));

  RH_TRY(ArmReceive(pair, mail));
  RH_TRY(StartRun(channel, RunKind::kSendLatency, hello));
  outcome->send_latency = RH_TRY(DriveSendLatency(pair, mail, limits));
  return channel.Send(End{}, RunEnd(hello));
}

Result<Outcome> Start(const Channel& channel, const TestParameters& parameters, const RailEnd& end,
                      const std::optional<IpAddress>& towards) {
  const ChosenEndpoint chosen = RH_TRY(ChooseEndpoint(end, towards));
  Hello hello;
  hello.rail = end.rail;
  hello.gid = chosen.gid.gid;
  hello.size = parameters.size;
  hello.depth = static_cast<std::uint16_t>(parameters.depth);
  hello.seconds = static_cast<std::uint16_t>(parameters.seconds);
  hello.timeout = static_cast<std::uint8_t>(parameters.timeout);
  hello.traffic_class = static_cast<std::uint8_t>(end.traffic_class.value_or(0));
  hello.service_level = static_cast<std::uint8_t>(end.service_level.value_or(0));
  RH_TRY(CheckHello(hello));
  QueuePair pair = RH_TRY(MakeQueuePair(chosen, hello, end));
  RH_TRY(channel.Send(hello, HandshakeEnd()));
  const Endpoint peer = RH_TRY(channel.Expect<Endpoint>(HandshakeEnd()));
  RH_TRY(CheckEndpoint(peer, chosen.gid.gid, MailOf(hello) + kMailBytes));
  const Endpoint own = EndpointOf(chosen, pair);
  RH_TRY(channel.Send(own, HandshakeEnd()));
  RH_TRY(pair.Connect(peer.queue_pair));
  RH_TRY(channel.Expect<Ready>(HandshakeEnd()));

  Outcome outcome;
  outcome.from = UsedOf(own);
  outcome.to = UsedOf(peer);
  outcome.mtu = pair.mtu();
  outcome.traffic_class = hello.traffic_class;
  RH_TRY(MeasureWith(channel, pair, hello, &outcome));
  return outcome;
}

Result<void> AnswerRun(const Channel& channel, QueuePair& pair, const Hello& hello, RunKind kind) {
  const std::size_t mail = MailOf(hello);
  if (kind == RunKind::kWriteLatency) ClearMail(pair, mail);
  if (kind == RunKind::kSendLatency) RH_TRY(ArmReceive(pair, mail));
  RH_TRY(channel.Send(Ready{}, RunEnd(hello)));
  switch (kind) {
    case RunKind::kWriteBandwidth:
      return {};
    case RunKind::kWriteLatency:
      return AnswerWriteLatency(pair, mail, LimitsOf(hello, channel));
    case RunKind::kSendLatency:
      return AnswerSendLatency(pair, mail, LimitsOf(hello, channel));
  }
  return {};
}

// Answers runs until the other end marks the last one.
Result<void> AnswerRuns(const Channel& channel, QueuePair& pair, const Hello& hello) {
  for (;;) {
    const Message message = RH_TRY(channel.Receive(RunEnd(hello)));
    if (std::holds_alternative<End>(message)) return {};
    if (std::holds_alternative<Done>(message)) continue;
    const Run* run = std::get_if<Run>(&message);
    if (run == nullptr)
      return Fail(ErrorCode::kMalformed, "the other end of the test sent something out of turn");
    RH_TRY(AnswerRun(channel, pair, hello, run->kind));
  }
}

Result<void> Answer(const Channel& channel, const ChooseRail& choose) {
  const Hello hello = RH_TRY(channel.Expect<Hello>(HandshakeEnd()));
  RH_TRY(CheckHello(hello));
  const RailEnd end = RH_TRY(choose(hello.rail));
  const ChosenEndpoint chosen = RH_TRY(ChooseEndpoint(end, AddressOfGid(hello.gid)));
  QueuePair pair = RH_TRY(MakeQueuePair(chosen, hello, end));
  RH_TRY(channel.Send(EndpointOf(chosen, pair), HandshakeEnd()));
  const Endpoint peer = RH_TRY(channel.Expect<Endpoint>(HandshakeEnd()));
  RH_TRY(CheckEndpoint(peer, chosen.gid.gid, MailOf(hello) + kMailBytes));
  RH_TRY(pair.Connect(peer.queue_pair));
  RH_TRY(channel.Send(Ready{}, HandshakeEnd()));
  return AnswerRuns(channel, pair, hello);
}

// Also sends a failure to the other end, if it still listens.
template <typename Value>
Result<Value> ReportFailure(const Channel& channel, Result<Value> result) {
  if (!result) (void)channel.Send(FailureOf(result.error()), HandshakeEnd());
  return result;
}

}  // namespace

Result<std::shared_ptr<const SharedKeys>> ReadKeys(const std::string& path) {
  if (path.empty()) return std::shared_ptr<const SharedKeys>();
  auto keys = RH_TRY(SharedKeys::Read(path));
  if (!keys)
    return Fail(ErrorCode::kNotFound, "no such key file: " + path, "openssl rand -hex 32 makes a key");
  return std::make_shared<const SharedKeys>(*std::move(keys));
}

std::chrono::seconds LongestTest(const TestParameters& parameters) {
  const std::chrono::seconds run = std::chrono::seconds(parameters.seconds) + 2 * StallOf(parameters.timeout);
  return 3 * kHandshake + kRuns * run + kSlack;
}

Result<Outcome> RunStartingEnd(const Channel& channel, const TestParameters& parameters, const RailEnd& end,
                               const std::optional<IpAddress>& towards) {
  return ReportFailure(channel, Start(channel, parameters, end, towards));
}

Result<void> RunAnsweringEnd(const Channel& channel, const ChooseRail& choose) {
  return ReportFailure(channel, Answer(channel, choose));
}

}  // namespace railhead::rdma_test
