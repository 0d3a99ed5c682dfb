// railheadd's memory while hundreds of connections to each of its sockets send as much as they can.
#include "tests/unit/deviceplugin/services/kubelet/endless_clients.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "cni/state/paths.h"
#include "deviceplugin/support/http/http_server.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"

namespace railhead::testing {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr int kClients = 200;
constexpr int kFew = 12;  // so many that none has to go for another
// To send on all of them together, if they are let.
constexpr std::size_t kMostSent = 512 * kMebibyte;
// What may be kept of it: 64 times 64 KiB of a line for ADD, 16 times 8 KiB of HTTP; gRPC's 64 times 256 KiB,
// and what it has beside them.
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
    // What is freed is free again: a sanitizer would keep 256 MiB of it.
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

  // Each of them keeps what it has until all have sent.
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

// One connection: how many there are is for root to choose, who alone can connect.
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
