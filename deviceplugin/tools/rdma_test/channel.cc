#include "deviceplugin/tools/rdma_test/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace railhead::rdma_test {
namespace {

constexpr std::chrono::milliseconds kLongestPoll{60'000};
// For the rest of a message whose beginning has come.
constexpr std::chrono::seconds kFailureLimit{1};

tl::unexpected<Error> Gone() {
  return Fail(ErrorCode::kIo, "the other end of the test has gone", "see the output of railctl there");
}

}  // namespace

Result<void> Channel::Wait(short events, TimePoint deadline) const {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd_.get(), events, 0};
    const auto limit = std::clamp(left, std::chrono::milliseconds(0), kLongestPoll);
    const int ready = poll(&waiting, 1, static_cast<int>(limit.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for the other end of the test");
    if (ready == 0 && left <= limit) {
      return Fail(ErrorCode::kTimeout, "the other end of the test did not answer in time",
                  "it may still wait for its device: see the output of railctl there");
    }
  }
}

Result<void> Channel::Send(const Message& message, TimePoint deadline) const {
  const std::string bytes = seal_->Seal(EncodeMessage(message));
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t sent = send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      RH_TRY(Wait(POLLOUT, deadline));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Gone();
    } else if (errno != EINTR) {
      return FailSys(errno, "sending to the other end of the test");
    }
  }
  return {};
}

Result<std::string> Channel::ReceiveBytes(std::size_t size, TimePoint deadline) const {
  std::string bytes(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    RH_TRY(Wait(POLLIN, deadline));
    const ssize_t got = recv(fd_.get(), bytes.data() + have, size - have, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return Gone();
    if (got > 0) have += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR && errno != EAGAIN)
      return FailSys(errno, "receiving from the other end of the test");
  }
  return bytes;
}

Result<Message> Channel::Receive(TimePoint deadline) const {
  const std::string first = RH_TRY(ReceiveBytes(kFrameHeader, deadline));
  const FrameHeader header = RH_TRY(DecodeHeader(first));
  const std::string sealed = RH_TRY(ReceiveBytes(header.length, deadline));
  const std::string payload = RH_TRY(seal_->Open(first, sealed));
  Message message = RH_TRY(DecodePayload(header, payload));
  if (const Failure* failure = std::get_if<Failure>(&message)) return Fail(ErrorOf(*failure));
  return message;
}

Result<void> Channel::CheckPeer() const {
  std::string first(kFrameHeader, '\0');
  const ssize_t got = recv(fd_.get(), first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0 && errno != ECONNRESET) return FailSys(errno, "checking the other end of the test");
  if (got <= 0) return Gone();
  // Half a header: the rest is under way, or never comes: the next read or the run's limit finds out.
  if (static_cast<std::size_t>(got) < first.size()) return {};
  const FrameHeader header = RH_TRY(DecodeHeader(first));
  if (!IsFailure(header)) return {};
  RH_TRY(Receive(std::chrono::steady_clock::now() + kFailureLimit));
  return {};
}

tl::unexpected<Error> Channel::Unexpected(const Message& message) {
  return Fail(ErrorCode::kMalformed,
              "the other end of the test sent a frame of kind " + std::to_string(message.index() + 1) +
                  " out of turn",
              "use the same version of railctl on both nodes");
}

}  // namespace railhead::rdma_test
