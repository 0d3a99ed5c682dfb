// railheadd's memory while hundreds of connections to each of its sockets send as much as they can.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cni/state/paths.h"
#include "deviceplugin/support/http/http_address.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"

namespace railhead::testing {
namespace {

// Many connections at once that send as much as the server lets them, and never come to an end.
//
// The first bytes of each look like those of an honest, slow client. It sends endless HTTP header lines or an
// endless line of JSON. Or it sends HTTP/2 with many gRPC calls: their messages are announced and never
// complete, and it keeps to the server's windows. A client that the server disconnects connects again.
// What one connection sends: more whenever it may. Threads: one.
class Endless {
 public:
  Endless() = default;
  Endless(const Endless&) = delete;
  Endless& operator=(const Endless&) = delete;
  virtual ~Endless() = default;
  // `heard`: what the server has sent since.
  virtual void Hear(const std::string& heard) = 0;
  // The next bytes; "": it may not send now.
  virtual std::string Next() = 0;
};

struct Sent {
  std::size_t bytes = 0;
  std::size_t connections = 0;  // with repeated ones
};

// `connect` gives a connected socket. Sends until `most` bytes are sent, or until the server has let none of
// the clients send for a while. The connections stay open in `kept`.
Sent SendWithoutEnd(int clients, std::size_t most, const std::function<UniqueFd()>& connect,
                    const std::function<std::unique_ptr<Endless>()>& make, std::vector<UniqueFd>* kept);

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

// ---- HTTP/2 (RFC 9113): as much as a client needs that only sends -----------------------------------

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

// `first`, and then `piece` again and again.
std::unique_ptr<Endless> EndlessText(std::string first, std::string piece) {
  return std::make_unique<Text>(std::move(first), std::move(piece));
}

// gRPC calls of `method` ("/package.Service/Method"), as many at once as the server allows.
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

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr int kClients = 200;
constexpr int kFew = 12;  // so few that the server closes none for another
// To send on all of them together, if they are let.
constexpr std::size_t kMostSent = 512 * kMebibyte;
// The bound on what railheadd may keep: 64 lines for ADD of 64 KiB each, 16 HTTP requests of 8 KiB each. For
// gRPC: 64 messages of 256 KiB each, and gRPC's own memory.
constexpr std::size_t kMostOfOurs = 12 * kMebibyte;
constexpr std::size_t kMostOfGrpc = 64 * kMebibyte;

UniqueFd ConnectTo(const sockaddr* address, socklen_t size) {
  UniqueFd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), address, size), 0) << errno;
  return fd;
}

UniqueFd ConnectToFile(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return ConnectTo(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

class EndlessClientsTest : public KubeletTest {
 protected:
  void SetUp() override {
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric(R"(, "pools": [
        {"resource": "railhead.io/roce", "rails": ["rail0"]},
        {"resource": "a.io/late", "rails": ["rail1"], "binding": "late"}])"));
    // By default a sanitizer retains 256 MiB of freed memory.
    environment_ = {"ASAN_OPTIONS=quarantine_size_mb=1:thread_local_quarantine_size_kb=64"};
    ASSERT_TRUE(kubelet_.Start());
    daemon_ = RunDaemon({"--resync-interval", "3600", "--http-address", "127.0.0.1:0"});
    ASSERT_TRUE(kubelet_.Devices(kResource, 4, Soon())) << daemon_->err();
    ASSERT_TRUE(kubelet_.Devices("a.io/late", 4, Soon())) << daemon_->err();
  }
  void TearDown() override {
    if (daemon_) {
      EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
    }
  }

  // Each client keeps its connection until all have sent.
  void Send(int clients, std::size_t most_growth, const std::function<UniqueFd()>& connect,
            const std::function<std::unique_ptr<Endless>()>& make) {
    const std::size_t before = daemon_->PeakBytes();
    ASSERT_GT(before, 0U);
    std::vector<UniqueFd> kept;
    const Sent sent = SendWithoutEnd(clients, kMostSent, connect, make, &kept);
    EXPECT_GE(sent.connections, static_cast<std::size_t>(clients));
    const std::size_t growth = daemon_->PeakBytes() - before;
    EXPECT_LT(growth, most_growth) << sent.bytes << " bytes sent by " << sent.connections << " connections";
    EXPECT_TRUE(kubelet_.Allocate(kResource, 1)) << daemon_->err();
  }
  std::string PluginSocket() {
    for (const std::string& name : ListDirectory(directory_).value().value_or(std::vector<std::string>{})) {
      if (name.starts_with("railhead-railhead.io_roce")) return directory_ + "/" + name;
    }
    ADD_FAILURE() << "no socket";
    return "";
  }
  std::string HttpAddress() {
    std::string address;
    EXPECT_TRUE(Eventually([&] {
      for (const std::string& line : Split(daemon_->err(), '\n')) {
        const auto json = nlohmann::json::parse(line, nullptr, false);
        if (json.is_object() && json.value("msg", "") == "serving metrics and probes")
          address = json["address"];
      }
      return !address.empty();
    })) << daemon_->err();
    return address;
  }

  DeviceManager kubelet_{directory_};
  std::unique_ptr<Process> daemon_;
};

// One connection: only root can connect, and root chooses the number of connections.
TEST_F(EndlessClientsTest, CallsOnThePluginSocket) {
  Send(
      1, kMostOfGrpc, [path = PluginSocket()] { return ConnectToFile(path); },
      [] { return EndlessCalls("/v1beta1.DevicePlugin/Allocate"); });
}

TEST_F(EndlessClientsTest, ALineOnTheSocketForAdd) {
  for (const int clients : {kFew, kClients}) {
    Send(
        clients, kMostOfOurs, [this] { return ConnectToFile(paths::BindSocket(root_)); },
        [] { return EndlessText("{\"version\":1,\"podUid\":\"", std::string(65536, 'x')); });
  }
}

TEST_F(EndlessClientsTest, Http) {
  const auto address = http::ParseHttpAddress(HttpAddress());
  ASSERT_TRUE(address);
  const auto connect = [&] {
    return ConnectTo(reinterpret_cast<const sockaddr*>(&address->address), address->length);
  };
  for (const int clients : {kFew, kClients}) {
    Send(clients, kMostOfOurs, connect,
         [] { return EndlessText("GET /metrics HTTP/1.1\r\n", "X-A: " + std::string(65536, 'x')); });
  }
}

}  // namespace
}  // namespace railhead::testing
