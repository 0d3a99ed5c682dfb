// railheadd as a process, with every kind of bad input: its configuration, its plugin socket and the socket
// for ADD. It reports the reason, and keeps running.
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>

#include "cni/state/bind_client.h"
#include "cni/state/bind_protocol.h"
#include "cni/state/paths.h"
#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"
#include "netns/base/files.h"
#include "netns/base/unique_fd.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"

namespace railhead::testing {
namespace {

constexpr std::size_t kLongestMessage = 2048;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

UniqueFd Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
  return fd;
}

std::size_t CountOf(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// ---- configuration ---------------------------------------------------------------------

struct Broken {
  const char* fabric;
  const char* said;  // a JSON pointer, mostly
};

const Broken kBroken[] = {
    {"", "fabric.json"},
    {"{", "fabric.json"},
    {"[]", "fabric.json"},
    {R"({"version": 2})", "/version"},
    {R"({"version": 1, "rails": [{"name": "r", "pf": "pf0", "vlan": 4095}]})", "/rails/0/vlan"},
    {R"({"version": 1, "rails": [{"name": "r", "pf": "pf0", "vlann": 5}]})", "/rails/0/vlann"},
    {R"({"version": 1, "rails": [{"name": "r", "pf": "pf0"}, {"name": "r", "pf": "pf1"}]})", "/rails/1/name"},
    {R"({"version": 1, "rails": [{"name": "r", "pf": "pf0"}], "pools": [{"resource": "a.io/x", "rails": ["s"]}]})",
     "/pools/0/rails"},
    {R"({"version": 1, "rails": [{"name": "r", "pf": "pf0"}], "pools": [{"resource": "no domain", "rails": ["r"]}]})",
     "/pools/0/resource"},
    {R"({"version": 1, "rails": [{"name": "r", "pf": "pf0"}],
         "pools": [{"resource": "a.io/x", "rails": ["r"]}, {"resource": "a.io/x", "rails": ["r"]}]})",
     "/pools/1"},
    {R"({"version": 1, "rails": [{"name": "r", "pf": "pf0"}],
         "pools": [{"resource": "a.io/x", "rails": ["r"], "binding": "late", "deviceNodes": "mount"}]})",
     "/pools/0"},
    {R"({"version": 1, "rails": [{"name": "r", "pf": "pf0"}], "health": {"link": {"downAfter": -1}}})",
     "/health/link/downAfter"},
};

TEST_F(ProcessTest, ABrokenFabricIsStatus3AndSaysWhere) {
  for (const Broken& broken : kBroken) {
    sysfs_.Write("/etc/railhead/fabric.json", broken.fabric);
    const auto daemon = Run({"--kubelet-dir", "/kubelet"});
    EXPECT_EQ(daemon->Wait(), 3) << broken.fabric;
    EXPECT_NE(daemon->err().find(broken.said), std::string::npos) << broken.fabric << "\n" << daemon->err();
  }
}

class BadInputTest : public KubeletTest {
 protected:
  void SetUp() override {
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric(R"(, "pools": [
        {"resource": "railhead.io/roce", "rails": ["rail0"]},
        {"resource": "a.io/late", "rails": ["rail1"], "binding": "late"}])"));
    ASSERT_TRUE(kubelet_.Start());
    // The process that starts railheadd may have any umask.
    const mode_t umask_before = ::umask(0);
    daemon_ = RunDaemon({"--resync-interval", "3600"});
    ::umask(umask_before);
    ASSERT_TRUE(kubelet_.Devices(kResource, 4, Soon())) << daemon_->err();
    ASSERT_TRUE(kubelet_.Devices("a.io/late", 4, Soon())) << daemon_->err();
  }
  void TearDown() override {
    EXPECT_TRUE(kubelet_.Allocate(kResource, 1)) << "it has to go on serving\n" << daemon_->err();
    EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  }

  // In one step, so that no reader sees half the file.
  void Configure(const std::string& fabric) {
    ASSERT_TRUE(WriteAtomic(root_.Path("/etc/railhead/fabric.json"), fabric, Sync::kVolatile, 0644));
    daemon_->Signal(SIGHUP);
  }
  std::string SocketOf(const std::string& resource) {
    const auto names = ListDirectory(directory_).value().value_or(std::vector<std::string>{});
    for (const std::string& name : names) {
      if (name.starts_with("railhead-" + resource)) return directory_ + "/" + name;
    }
    ADD_FAILURE() << "no socket of " << resource;
    return "";
  }
  std::unique_ptr<v1beta1::DevicePlugin::Stub> Plugin() {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1beta1::DevicePlugin::NewStub(grpc::CreateCustomChannel(
        "unix:" + SocketOf("railhead.io_roce"), grpc::InsecureChannelCredentials(), arguments));
  }
  grpc::Status Allocate(const std::vector<std::vector<std::string>>& containers) {
    v1beta1::AllocateRequest request;
    for (const auto& ids : containers) {
      auto* container = request.add_container_requests();
      for (const std::string& id : ids) container->add_device_ids(id);
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1beta1::AllocateResponse response;
    return Plugin()->Allocate(&context, request, &response);
  }
  grpc::Status Prefer(const std::vector<std::string>& available, const std::vector<std::string>& must,
                      int size, v1beta1::PreferredAllocationResponse* response) {
    v1beta1::PreferredAllocationRequest request;
    auto* container = request.add_container_requests();
    for (const std::string& id : available) container->add_available_device_ids(id);
    for (const std::string& id : must) container->add_must_include_device_ids(id);
    container->set_allocation_size(size);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    return Plugin()->GetPreferredAllocation(&context, request, response);
  }
  grpc::Status PreStart(const std::vector<std::string>& ids) {
    v1beta1::PreStartContainerRequest request;
    for (const std::string& id : ids) request.add_device_ids(id);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1beta1::PreStartContainerResponse response;
    return Plugin()->PreStartContainer(&context, request, &response);
  }
  static void ExpectRefused(const grpc::Status& status, grpc::StatusCode code, const std::string& said) {
    EXPECT_EQ(status.error_code(), code) << said << ": " << status.error_message();
    EXPECT_NE(status.error_message().find(said), std::string::npos) << status.error_message();
    EXPECT_LE(status.error_message().size(), kLongestMessage);
  }
  bool HasLogged(const std::string& text, std::size_t times = 1) {
    return Eventually([&] { return CountOf(daemon_->err(), text) >= times; });
  }

  DeviceManager kubelet_{directory_};
  std::unique_ptr<Process> daemon_;
};

TEST_F(BadInputTest, ABrokenFabricWhileItRunsIsSaidOnce) {
  const std::string good = ReadFile(root_.Path("/etc/railhead/fabric.json")).value().value_or("");
  for (const Broken& broken : kBroken) {
    const std::size_t before = CountOf(daemon_->err(), "discovery succeeds again");
    Configure(broken.fabric);
    ASSERT_TRUE(HasLogged("the last valid configuration stays in use", before + 1)) << broken.fabric;
    const std::string log = daemon_->err();
    EXPECT_NE(log.find(broken.said, log.rfind("the last valid configuration")), std::string::npos)
        << broken.fabric << log;
    // A later discovery finds the same, and logs nothing.
    const std::size_t looks = CountOf(log, "discovery requested");
    daemon_->Signal(SIGHUP);
    ASSERT_TRUE(HasLogged("discovery requested", looks + 1));
    EXPECT_EQ(kubelet_.Present(kResource).size(), 4U);
    Configure(good);
    ASSERT_TRUE(HasLogged("discovery succeeds again", before + 1)) << daemon_->err();
  }
  EXPECT_EQ(CountOf(daemon_->err(), "the last valid configuration stays in use"), std::size(kBroken))
      << daemon_->err();
  EXPECT_EQ(kubelet_.Registrations(kResource), 1) << "kubelet is not to notice any of it";
}

// Connecting needs write permission (unix(7)): only root can connect, whatever the umask was.
TEST_F(BadInputTest, SocketsAreNotForEverybody) {
  for (const std::string& socket :
       {SocketOf("railhead.io_roce"), SocketOf("a.io_late"), paths::BindSocket(root_)}) {
    struct stat status {};
    ASSERT_EQ(::lstat(socket.c_str(), &status), 0) << socket;
    EXPECT_TRUE(S_ISSOCK(status.st_mode)) << socket;
    EXPECT_EQ(status.st_mode & 0022U, 0U) << socket << std::oct << " " << status.st_mode;
  }
}

// ---- the plugin socket -----------------------------------------------------------------

TEST_F(BadInputTest, RequestsThatMakeNoSense) {
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  ExpectRefused(Allocate({}), kInvalid, "no container");
  ExpectRefused(Allocate({{}}), kInvalid, "no device ids");
  ExpectRefused(Allocate({{"0000:ff:00.0"}}), kInvalid, "0000:ff:00.0");
  ExpectRefused(Allocate({{""}}), kInvalid, "is not a device");
  ExpectRefused(Allocate({{"../../../etc/passwd"}}), kInvalid, "is not a device");
  ExpectRefused(Allocate({{vfs0_[0], vfs0_[0]}}), kInvalid, "twice");
  ExpectRefused(Allocate({{vfs0_[0]}, {vfs0_[0]}}), kInvalid, "twice");
  ExpectRefused(Allocate({{vfs0_[0]}, {vfs1_[0]}}), kInvalid, vfs1_[0]);
  EXPECT_FALSE(Exists(paths::Allocations(root_) + "/" + vfs0_[0] + ".json"))
      << "half of a bad request was done";

  ExpectRefused(PreStart({}), kInvalid, "without device ids");
  ExpectRefused(PreStart({"../../etc/passwd"}), kInvalid, "is not a device id");
  ExpectRefused(PreStart(std::vector<std::string>(5000, "a")), kInvalid, "5000");
  ExpectRefused(PreStart({vfs0_[0]}), grpc::StatusCode::FAILED_PRECONDITION, "attached to no pod");

  v1beta1::PreferredAllocationResponse answer;
  ExpectRefused(Prefer(vfs0_, {}, -1, &answer), kInvalid, "-1");
  ExpectRefused(Prefer(vfs0_, {}, 5, &answer), kInvalid, "4 are available");
  ExpectRefused(Prefer(vfs0_, {vfs1_[0]}, 1, &answer), kInvalid, vfs1_[0]);
  ExpectRefused(Prefer(vfs0_, {vfs0_[0], vfs0_[1]}, 1, &answer), kInvalid, "2 must be included");
  ExpectRefused(Prefer({}, {}, 1, &answer), kInvalid, "0 are available");
  EXPECT_TRUE(Prefer(vfs0_, {}, 0, &answer).ok());
  EXPECT_EQ(answer.container_responses(0).device_ids_size(), 0);
  // kubelet may not know yet that a device is gone.
  EXPECT_TRUE(Prefer({"gone", vfs0_[1]}, {}, 1, &answer).ok());
  EXPECT_EQ(answer.container_responses(0).device_ids(0), vfs0_[1]);
}

TEST_F(BadInputTest, RequestsWithoutEnd) {
  std::vector<std::string> many(100'000, "0000:43:02.");
  for (std::size_t i = 0; i < many.size(); ++i) many[i] += std::to_string(i);
  v1beta1::PreferredAllocationResponse answer;
  constexpr auto kTooLarge = grpc::StatusCode::RESOURCE_EXHAUSTED;
  ExpectRefused(Allocate({many}), kTooLarge, "larger than max");
  ExpectRefused(Prefer(many, {}, 1, &answer), kTooLarge, "larger than max");
  ExpectRefused(PreStart(many), kTooLarge, "larger than max");
  ExpectRefused(Allocate({{std::string(kMebibyte, 'x')}}), kTooLarge, "larger than max");
  // What gRPC lets through.
  many.resize(10'000);
  ExpectRefused(Allocate({many}), grpc::StatusCode::INVALID_ARGUMENT, "is not a device");
  ExpectRefused(Prefer(many, {}, 1, &answer), grpc::StatusCode::INVALID_ARGUMENT, "10000");
  for (const char letter : {'x', '\x01', '\n', '/'}) {
    const std::string name(200'000, letter);
    ExpectRefused(Allocate({{name}}), grpc::StatusCode::INVALID_ARGUMENT,
                  "allocating devices of railhead.io/roce");
    ExpectRefused(PreStart({name}), grpc::StatusCode::INVALID_ARGUMENT, "");
  }
  EXPECT_LT(daemon_->err().size(), kMebibyte) << "nobody can fill the log";
}

TEST_F(BadInputTest, WhatIsNoUtf8) {
  for (const std::string& name : {std::string("\xff\xfe"), std::string("\xc3"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(Allocate({{name}}).ok());
    EXPECT_FALSE(PreStart({name}).ok());
    v1beta1::PreferredAllocationResponse answer;
    EXPECT_FALSE(Prefer({name}, {name}, 2, &answer).ok());
  }
}

TEST_F(BadInputTest, ConnectionsThatSayNothingOrNonsense) {
  constexpr int kMany = 100;
  const std::string socket = SocketOf("railhead.io_roce");
  std::vector<UniqueFd> silent;
  silent.reserve(kMany);
  for (int i = 0; i < kMany; ++i) {
    silent.push_back(Connect(socket));
    const std::string said = i % 3 == 0 ? "" : i % 3 == 1 ? "PRI * HTTP/2" : std::string(5000, '\xee');
    (void)::send(silent.back().get(), said.data(), said.size(), MSG_NOSIGNAL);
  }
  EXPECT_TRUE(Allocate({{vfs0_[0]}}).ok());
  EXPECT_TRUE(kubelet_.Allocate(kResource, 2)) << "kubelet is served beside them";
  EXPECT_EQ(kubelet_.Registrations(kResource), 1);
}

// These clients send nothing more, and wait for an answer.
TEST_F(BadInputTest, ConnectionsThatAreClosedHalf) {
  for (const std::string& socket : {SocketOf("railhead.io_roce"), paths::BindSocket(root_)}) {
    for (const std::string& said :
         {std::string(), std::string("x"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
      const UniqueFd half = Connect(socket);
      (void)::send(half.get(), said.data(), said.size(), MSG_NOSIGNAL);
      ASSERT_EQ(::shutdown(half.get(), SHUT_WR), 0);
      std::array<char, 4096> buffer{};
      ssize_t n = 0;
      while ((n = ::recv(half.get(), buffer.data(), buffer.size(), 0)) > 0) {
      }
      EXPECT_LE(n, 0) << "it hangs up: " << socket;
    }
  }
  EXPECT_TRUE(Allocate({{vfs0_[0]}}).ok());
  EXPECT_TRUE(BindSlots(root_, {"uid", "container", {"slot-1"}}).error().code != ErrorCode::kBusy);
}

// ---- the socket for ADD ----------------------------------------------------------------

bool IsOpen(const UniqueFd& connection) {
  pollfd polled{connection.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 0;
}

TEST_F(BadInputTest, SilentConnectionsKeepNoAddWaiting) {
  const auto given = kubelet_.Allocate("a.io/late", 1);
  ASSERT_TRUE(given) << Describe(given.error());
  std::vector<UniqueFd> silent;
  silent.reserve(20);
  for (int i = 0; i < 20; ++i) {
    silent.push_back(Connect(paths::BindSocket(root_)));
    if (i % 2 == 0) (void)::send(silent.back().get(), "{\"version\"", 10, MSG_NOSIGNAL);
  }
  const auto bound = BindSlots(root_, {"uid", "container", given->ids});
  EXPECT_TRUE(IsOpen(silent.back())) << "it was answered only after they had been given up";
  ASSERT_TRUE(bound) << Describe(bound.error()) << daemon_->err();
  EXPECT_EQ(bound->size(), 1U);
  EXPECT_TRUE(Eventually([&] { return !IsOpen(silent.front()) && !IsOpen(silent.back()); }))
      << "they are not kept for ever";
}

TEST_F(BadInputTest, NonsenseOnTheSocketForAdd) {
  const std::string slot = "slot-1";
  for (const std::string& line :
       {std::string("\n"), std::string("nonsense\n"), std::string("{}\n"), std::string("\xff\xff\n"),
        std::string(R"({"version":1,"podUid":"u","containerId":"c","slots":[]})") + "\n",
        std::string(R"({"version":1,"podUid":"u","containerId":"c","slots":["../../etc/passwd"]})") + "\n",
        std::string(R"({"version":1,"podUid":"u","containerId":"c","slots":["slot-1"]})") + "\n",
        std::string(R"({"version":9,"podUid":"u","containerId":"c","slots":["slot-1"]})") + "\n",
        std::string(30'000, '[') + "\n"}) {
    const UniqueFd connection = Connect(paths::BindSocket(root_));
    ASSERT_EQ(::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(line.size()));
    std::string answer;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::recv(connection.get(), buffer.data(), buffer.size(), 0)) > 0;)
      answer.append(buffer.data(), static_cast<std::size_t>(n));
    const auto refused = ParseBindAnswer(answer.substr(0, answer.find('\n')), {"u", "c", {slot}});
    ASSERT_FALSE(refused) << line.substr(0, 80);
    EXPECT_NE(answer.find("\"msg\""), std::string::npos) << line.substr(0, 80) << " -> " << answer;
  }
  // Without an end: it hangs up.
  const UniqueFd endless = Connect(paths::BindSocket(root_));
  const std::string piece(4096, 'x');
  EXPECT_TRUE(
      Eventually([&] { return ::send(endless.get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0; }));
}

}  // namespace
}  // namespace railhead::testing
