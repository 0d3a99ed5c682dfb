// Late binding as ADD sees it: kubelet gave slots, and a daemon says which devices they are.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "cni/protocol/cni_result.h"
#include "cni/state/allocation.h"
#include "cni/state/bind_protocol.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/unique_fd.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

constexpr const char* kUid = "6a5a2b9e-0c1f-4f7e-9d56-000000000002";
constexpr const char* kSlotA = "slot-1a2b3c4d-n0-000";
constexpr const char* kSlotB = "slot-1a2b3c4d-n1-001";

// Listens like railheadd and answers what it is told.
class StandInDaemon {
 public:
  StandInDaemon(const Root& root, std::string answer) : answer_(std::move(answer)) {
    const std::string path = paths::BindSocket(root);
    EXPECT_TRUE(MakeDirectories(path.substr(0, path.rfind('/'))));
    (void)::unlink(path.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this] { Loop(); });
  }
  StandInDaemon(const StandInDaemon&) = delete;
  StandInDaemon& operator=(const StandInDaemon&) = delete;
  ~StandInDaemon() {
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] std::string asked() const { return asked_; }

 private:
  void Loop() {
    while (!stopping_) {
      const UniqueFd connection(::accept(listener_.get(), nullptr, nullptr));
      if (!connection.valid()) continue;
      std::array<char, 4096> buffer{};
      const ssize_t n = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
      asked_.assign(buffer.data(), static_cast<std::size_t>(n > 0 ? n : 0));
      (void)::send(connection.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }

  const std::string answer_;
  std::string asked_;
  UniqueFd listener_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class PluginLateTest : public RailsFixture {
 protected:
  void SetUp() override {
    RailsFixture::SetUp();
    const std::vector<std::string> slots = {kSlotA, kSlotB};
    for (const auto& slot : slots) {
      ASSERT_TRUE(WriteAllocation(
          sysfs_.root(), {kDefaultResource, slot, slots, 1, HandoffPolicy::kRequired, Delivery::kCdi}));
    }
    const nlohmann::json entry = {{"PodUID", kUid},
                                  {"ContainerName", "main"},
                                  {"ResourceName", kDefaultResource},
                                  {"DeviceIDs", {{"0", {kSlotA}}, {"1", {kSlotB}}}},
                                  {"AllocResp", ""}};
    WriteFileAt(paths::KubeletCheckpoint(sysfs_.root()),
                nlohmann::json{{"Data", {{"PodDeviceEntries", {entry}}}}, {"Checksum", 1}}.dump());
  }
  [[nodiscard]] std::string Bound() const {
    return FormatBindAnswer(Bindings{{kSlotA, Bdf(0)}, {kSlotB, Bdf(1)}});
  }
  static Call OfPod() {
    return {.network = "rails", .config = IpamForAll(), .args = std::string("K8S_POD_UID=") + kUid};
  }
  nlohmann::json Cdi(const std::string& slot) {
    return nlohmann::json::parse(File("/run/cdi/railhead-" + slot + ".json"), nullptr, false);
  }
};

TEST_F(PluginLateTest, SlotsBecomeDevices) {
  StandInDaemon daemon(sysfs_.root(), Bound());
  const auto before = World();
  const auto added = Add(OfPod());
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(pod_), (std::vector<std::string>{"rail0", "rail1"}));
  const auto request = ParseBindRequest(daemon.asked());
  ASSERT_TRUE(request) << daemon.asked();
  EXPECT_EQ(request->pod_uid, kUid);
  EXPECT_EQ(request->container_id, "c1");
  EXPECT_EQ(request->slots, (std::vector<std::string>{kSlotA, kSlotB}));

  // What CreateContainer injects, by the name that Allocate gave; the whole pod's values.
  for (const char* slot : {kSlotA, kSlotB}) {
    const auto spec = Cdi(slot);
    ASSERT_FALSE(spec.is_discarded()) << slot;
    EXPECT_EQ(spec["devices"][0]["name"], slot);
    const auto& edits = spec["devices"][0]["containerEdits"];
    EXPECT_EQ(edits["env"][0], "PCIDEVICE_RAILHEAD_IO_ROCE=" + Bdf(0) + "," + Bdf(1));
    EXPECT_FALSE(edits["deviceNodes"].empty());
    EXPECT_FALSE(edits["mounts"].empty()) << "nccl.conf";
  }
  EXPECT_EQ(File("/run/cdi/railhead-" + Bdf(0) + ".json"), "") << "nobody asks for that name";

  // The daemon finds them by slot, as the gate before a container's start does.
  const Journal journal(sysfs_.root());
  const auto entry = journal.FindByDevice(kSlotB);
  ASSERT_TRUE(entry && *entry);
  EXPECT_EQ((*entry)->phase, Phase::kDone);
  EXPECT_TRUE(journal.HoldsDevice(kSlotB).value());
  const auto scan = journal.Scan();
  ASSERT_TRUE(scan);
  EXPECT_TRUE(scan->loose.empty());

  const auto checked = Check(OfPod());
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(OfPod()));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginLateTest, OneSlotFromMultus) {
  StandInDaemon daemon(sysfs_.root(), Bound());
  const auto before = World();
  const auto with = [&](const char* slot, const char* address) {
    return std::string(R"("deviceID":")") + slot + R"(",)" + Ipam(address);
  };
  const Call first{.network = "a", .ifname = "net1", .config = with(kSlotA, "10.100.0.10/24")};
  const Call second{.network = "b", .ifname = "net2", .config = with(kSlotB, "10.200.0.10/24")};
  const auto one = Add(first);
  ASSERT_TRUE(one) << Describe(one.error());
  const auto two = Add(second);
  ASSERT_TRUE(two) << Describe(two.error());
  for (const char* slot : {kSlotA, kSlotB}) {
    EXPECT_EQ(Cdi(slot)["devices"][0]["containerEdits"]["env"][0],
              "PCIDEVICE_RAILHEAD_IO_ROCE=" + Bdf(0) + "," + Bdf(1))
        << "the same in both, or chance would decide";
  }
  ASSERT_TRUE(Del(second));
  ASSERT_TRUE(Del(first));
  EXPECT_EQ(ChangedSince(before), "");
}

// kubelet makes another sandbox while the first one is still there: it waits for that, whatever
// device the daemon names, and nothing of the first one is touched.
// The variables of the first slot's spec are written again with the second; its mounts stay.
TEST_F(PluginLateTest, ASlotWithoutHandoffLeavesTheTopologyFileOfTheOthers) {
  StandInDaemon daemon(sysfs_.root(), Bound());
  sysfs_.Write("/proc/cpuinfo",
               "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n");
  auto fabric = nlohmann::json::parse(File("/etc/railhead/fabric.json"));
  fabric["handoff"]["topology"] = "always";
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", fabric.dump());
  const std::string args = std::string("K8S_POD_UID=") + kUid;
  const auto of_slot = [](const char* slot) { return std::string("\"deviceID\":\"") + slot + "\""; };
  const auto first = Add({.network = "a", .config = of_slot(kSlotA) + "," + Ipam(), .args = args});
  ASSERT_TRUE(first) << Describe(first.error());
  ASSERT_EQ(Cdi(kSlotA)["devices"][0]["containerEdits"]["mounts"].size(), 3U)
      << "for NCCL, RCCL, and the topology";
  const auto second = Add({.network = "b",
                           .ifname = "net2",
                           .config = of_slot(kSlotB) + "," + Ipam("10.200.0.10/24") + R"(,"handoff":"off")",
                           .args = args});
  ASSERT_TRUE(second) << Describe(second.error());
  const auto edits = Cdi(kSlotA)["devices"][0]["containerEdits"];
  EXPECT_EQ(edits["mounts"].size(), 3U) << edits;
  EXPECT_EQ(edits["env"][0], "PCIDEVICE_RAILHEAD_IO_ROCE=" + Bdf(0) + "," + Bdf(1));
}

TEST_F(PluginLateTest, ASlotIsInOneSandboxAtATime) {
  const std::string other = MakePod("pod2");
  Call second = OfPod();
  second.container = "c2";
  second.netns = other;
  second.config += R"(,"homeWaitSeconds":0)";
  {
    StandInDaemon daemon(sysfs_.root(), Bound());
    ASSERT_TRUE(Add(OfPod()));
  }
  StandInDaemon daemon(sysfs_.root(), FormatBindAnswer(Bindings{{kSlotA, Bdf(0, 1)}, {kSlotB, Bdf(1, 1)}}));
  const auto refused = Add(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(CniCodeOf(refused.error().code), kCniTryAgainLater) << Describe(refused.error());
  const auto checked = Check(OfPod());
  EXPECT_TRUE(checked) << Describe(checked.error());
  // Its namespace died without a DEL: the next sandbox finishes it.
  kernel_.RemoveNamespace(pod_);
  const auto added = Add(second);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(other), (std::vector<std::string>{"rail0", "rail1"}));
  EXPECT_NE(kernel_.state().Find(kHost, "pf0v0"), nullptr) << "the first one's device is home";
}

TEST_F(PluginLateTest, WithoutADaemonTryAgainLater) {
  const auto before = World();
  const auto added = Add(OfPod());
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniTryAgainLater) << Describe(added.error());
  EXPECT_NE(Describe(added.error()).find("railheadd"), std::string::npos) << Describe(added.error());
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_TRUE(Del(OfPod())) << "needs none";
}

TEST_F(PluginLateTest, WhatTheDaemonSaysIsPassedOn) {
  for (const std::string& answer :
       {FormatBindAnswer(Fail(ErrorCode::kBusy, "2 slots need a device each, and 1 is free", "wait")),
        std::string("nonsense\n"), std::string("{\"devices\":{}}\n"), std::string()}) {
    StandInDaemon daemon(sysfs_.root(), answer);
    const auto before = World();
    const auto added = Add(OfPod());
    ASSERT_FALSE(added) << answer;
    EXPECT_FALSE(Describe(added.error()).empty());
    EXPECT_EQ(ChangedSince(before), "");
  }
}

}  // namespace
}  // namespace railhead::testing
