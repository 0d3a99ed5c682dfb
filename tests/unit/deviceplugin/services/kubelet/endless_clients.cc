#include "tests/unit/deviceplugin/services/kubelet/endless_clients.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <utility>

namespace railhead::testing {
namespace {

constexpr int kQuietMs = 1000;
constexpr std::size_t kMostReturns = 2;
constexpr std::size_t kMostCalls = 5000;

class Text final : public Endless {
 public:
  Text(std::string first, std::string piece) : next_(std::move(first)), piece_(std::move(piece)) {}
  void Hear(const std::string& /*heard*/) override {}
  std::string Next() override { return std::exchange(next_, piece_); }

 private:
  std::string next_;
  std::string piece_;
};

// ---- HTTP/2 (RFC 9113), as little of it as a client needs that only sends ---------------------------

enum FrameType : std::uint8_t { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kWindowUpdate = 8 };
constexpr std::uint8_t kEndHeaders = 4;
constexpr std::uint8_t kAck = 1;
constexpr std::size_t kFrameHead = 9;
constexpr std::size_t kPiece = 16384;  // SETTINGS_MAX_FRAME_SIZE at first
constexpr std::size_t kFirstWindow = 65535;
constexpr std::uint32_t kMessage = 200'000;
constexpr std::uint16_t kSettingMaxStreams = 3;
constexpr std::uint16_t kSettingWindow = 4;

std::string BigEndian(std::uint32_t value, int bytes) {
  std::string text;
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    text += static_cast<char>((value >> shift) & 0xffU);
  return text;
}

std::uint32_t Number(const std::string& text, std::size_t at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = (value << 8U) | static_cast<std::uint8_t>(text.at(at + i));
  return value;
}

std::string Frame(FrameType type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
  std::string frame = BigEndian(static_cast<std::uint32_t>(payload.size()), 3);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  return frame + BigEndian(stream, 4) + payload;
}

// HPACK: a literal without indexing and without Huffman's code.
std::string Field(const std::string& name, const std::string& value) {
  const auto text = [](const std::string& one) { return static_cast<char>(one.size()) + one; };
  return std::string(1, '\0') + text(name) + text(value);
}

class Calls final : public Endless {
 public:
  explicit Calls(std::string method) : method_(std::move(method)) {
    out_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "");
  }

  void Hear(const std::string& heard) override {
    in_ += heard;
    while (in_.size() >= kFrameHead && in_.size() >= kFrameHead + Number(in_, 0, 3)) {
      const std::size_t length = Number(in_, 0, 3);
      Take(static_cast<std::uint8_t>(in_[3]), static_cast<std::uint8_t>(in_[4]), Number(in_, 5, 4),
           in_.substr(kFrameHead, length));
      in_.erase(0, kFrameHead + length);
    }
  }

  std::string Next() override {
    if (!out_.empty()) return std::exchange(out_, "");
    if (calls_.size() < std::min(most_calls_, kMostCalls)) return Call();
    for (auto& [stream, call] : calls_) {
      const auto size = std::min<std::int64_t>({call.window, call.left, window_, kPiece});
      if (size <= 0) continue;
      call.window -= size;
      call.left -= size;
      window_ -= size;
      return Frame(kData, 0, stream, std::string(static_cast<std::size_t>(size), 'x'));
    }
    return "";
  }

 private:
  struct Open {
    std::int64_t window = 0;
    std::int64_t left = 0;  // to be sent of its message, but for the last byte
  };

  std::string Call() {
    const std::uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
    // Whose first five bytes say how long it is.
    const std::string head = std::string(1, '\0') + BigEndian(kMessage, 4);
    calls_[stream] = {first_window_ - static_cast<std::int64_t>(head.size()), kMessage - 1};
    window_ -= static_cast<std::int64_t>(head.size());
    return Frame(kHeaders, kEndHeaders, stream,
                 Field(":method", "POST") + Field(":scheme", "http") + Field(":path", method_) +
                     Field(":authority", "localhost") + Field("content-type", "application/grpc") +
                     Field("te", "trailers")) +
           Frame(kData, 0, stream, head);
  }

  void Take(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
    if (type == kReset) calls_.erase(stream);
    if (type == kWindowUpdate) {
      const std::uint32_t more = Number(payload, 0, 4);
      if (stream == 0) {
        window_ += more;
      } else if (const auto found = calls_.find(stream); found != calls_.end()) {
        found->second.window += more;
      }
    }
    if (type != kSettings || (flags & kAck) != 0) return;
    most_calls_ = kMostCalls;
    for (std::size_t at = 0; at + 6 <= payload.size(); at += 6) {
      const std::uint32_t value = Number(payload, at + 2, 4);
      if (Number(payload, at, 2) == kSettingMaxStreams) most_calls_ = value;
      if (Number(payload, at, 2) != kSettingWindow) continue;
      for (auto& [open, call] : calls_) call.window += value - first_window_;
      first_window_ = value;
    }
    out_ += Frame(kSettings, kAck, 0, "");
  }

  const std::string method_;
  std::string in_;
  std::string out_;
  std::uint32_t next_stream_ = 1;
  std::size_t most_calls_ = 1;  // until the server has said it
  std::int64_t first_window_ = kFirstWindow;
  std::int64_t window_ = kFirstWindow;  // of the connection
  std::map<std::uint32_t, Open> calls_;
};

struct Client {
  UniqueFd fd;
  std::unique_ptr<Endless> says;
  std::string rest;  // of what it says
};

// false: the server has hung up.
bool Listen(Client& client) {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t n = ::recv(client.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
    client.says->Hear(std::string(buffer.data(), static_cast<std::size_t>(n)));
  }
}

// How much; less than nothing when the server has hung up.
ssize_t Speak(Client& client) {
  ssize_t sent = 0;
  for (;;) {
    if (client.rest.empty()) client.rest = client.says->Next();
    if (client.rest.empty()) return sent;
    const ssize_t n =
        ::send(client.fd.get(), client.rest.data(), client.rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return sent;
    if (n < 0) return -1;
    client.rest.erase(0, static_cast<std::size_t>(n));
    sent += n;
    if (sent > (1 << 20)) return sent;  // others' turn
  }
}

}  // namespace

std::unique_ptr<Endless> EndlessText(std::string first, std::string piece) {
  return std::make_unique<Text>(std::move(first), std::move(piece));
}

std::unique_ptr<Endless> EndlessCalls(std::string method) {
  return std::make_unique<Calls>(std::move(method));
}

Sent SendWithoutEnd(int clients, std::size_t most, const std::function<UniqueFd()>& connect,
                    const std::function<std::unique_ptr<Endless>()>& make, std::vector<UniqueFd>* kept) {
  std::vector<Client> all(static_cast<std::size_t>(clients));
  Sent sent;
  while (sent.bytes < most && sent.connections < all.size() * kMostReturns) {
    std::size_t now = 0;
    std::vector<pollfd> waiting;
    for (Client& client : all) {
      if (!client.fd.valid()) {
        client = {connect(), make(), ""};
        ++sent.connections;
      }
      const ssize_t n = Listen(client) ? Speak(client) : -1;
      if (n < 0) client.fd.Reset();
      if (n > 0) now += static_cast<std::size_t>(n);
      waiting.push_back(
          {client.fd.get(), static_cast<short>(client.rest.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    }
    sent.bytes += now;
    const bool all_open =
        std::all_of(all.begin(), all.end(), [](const Client& client) { return client.fd.valid(); });
    if (now == 0 && all_open && ::poll(waiting.data(), waiting.size(), kQuietMs) == 0) break;
  }
  for (Client& client : all) kept->push_back(std::move(client.fd));
  return sent;
}

}  // namespace railhead::testing
