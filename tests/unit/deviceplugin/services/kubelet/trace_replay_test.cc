// railheadd in the conversations that a real kubelet had with it, and in one of the stand-in's.
#include "tests/support/kubelet/trace_replay.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "netns/base/files.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

constexpr int kLives = 2;  // of the stand-in that is recorded
constexpr const char* kFabric = R"({"version": 1, "rails": [
    {"name": "rail0", "pf": "pf0"}, {"name": "rail1", "pf": "pf1"}, {"name": "rail2", "pf": "pf2"}], "pools": [
    {"resource": "railhead.io/a", "rails": ["rail0"], "ncclConfig": "off"},
    {"resource": "railhead.io/b", "rails": ["rail1"], "ncclConfig": "off"},
    {"resource": "railhead.io/c", "rails": ["rail2"]}]})";

class TraceReplayTest : public KubeletTest {
 protected:
  TraceReplayTest() {
    sysfs_.AddPf({.address = "0000:e3:00.0", .netdev = "pf2", .rdma = "mlx5_2", .numa_node = 0});
    const auto vfs2 = sysfs_.AddVfs("0000:e3:00.0", 4, {.rdma = "{pf}_rdma{n}"});
    devices_ = {{"railhead.io/a", {vfs0_.begin(), vfs0_.end()}},
                {"railhead.io/b", {vfs1_.begin(), vfs1_.end()}},
                {"railhead.io/c", {vfs2.begin(), vfs2.end()}}};
    sysfs_.Write("/etc/railhead/fabric.json", kFabric);
  }

  TraceReplay::Host MakeHost() {
    return {.start = [this](int plugin) { daemons_[plugin] = RunDaemon(); },
            .stop = [this](int plugin) { EXPECT_EQ(daemons_[plugin]->Stop(), 0); },
            .kill = [this](int plugin) { daemons_[plugin]->Kill(); },
            .set_devices =
                [](const std::string& resource, const std::set<std::string>& /*ids*/) {
                  ADD_FAILURE() << resource << ": this node's devices do not change";
                }};
  }

  Result<void> Replay(const Trace& trace, std::chrono::seconds patience = std::chrono::seconds(60)) {
    return TraceReplay(directory_, MakeHost(), patience).Play(trace);
  }

  // What the stand-in says of a registration, a pod and a restart. nullopt: it has dropped a plugin for the
  // late end of a stream, as it may on a busy machine. A replay would have to drop the plugin at the same
  // moment.
  std::optional<Trace> RecordStandIn() {
    Trace trace{"stand-in", "recorded by a test", {}};
    std::mutex mutex;
    KubeletOptions options;
    options.record = [&](TraceEvent event) {
      const std::lock_guard<std::mutex> lock(mutex);
      trace.events.push_back(std::move(event));
    };
    trace.events.push_back({"node", "PluginStart", "", 1, nullptr, nullptr, std::nullopt});
    daemons_[1] = RunDaemon();
    {
      DeviceManager kubelet(directory_, options);
      for (int life = 0; life < kLives; ++life) {
        EXPECT_TRUE(kubelet.Start());
        for (const auto& [resource, ids] : devices_) EXPECT_TRUE(kubelet.Devices(resource, 4, Soon()));
        EXPECT_TRUE(kubelet.Allocate("railhead.io/a", 2));
        EXPECT_FALSE(kubelet.PreStart("railhead.io/c", {*devices_["railhead.io/c"].begin()}));
        kubelet.Kill();
      }
    }
    EXPECT_EQ(daemons_[1]->Stop(), 0);
    (void)RemoveFile(directory_ + "/kubelet.sock");
    (void)RemoveFile(directory_ + "/kubelet_internal_checkpoint");
    const auto registrations = std::ranges::count(trace.events, "Register", &TraceEvent::call);
    if (registrations != std::ssize(devices_) * kLives) return std::nullopt;
    return trace;
  }

  std::map<std::string, std::set<std::string>> devices_;
  std::map<int, std::unique_ptr<Process>> daemons_;
};

class RealTraceTest : public TraceReplayTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(RealTraceTest, IsAnsweredAsItWas) {
  const auto trace = ReadTrace(std::string(TRACES) + "/" + GetParam() + ".jsonl");
  ASSERT_TRUE(trace) << Describe(trace.error());
  const auto played = Replay(*trace);
  EXPECT_TRUE(played) << Describe(played.error());
}

INSTANTIATE_TEST_SUITE_P(Kubelet1362, RealTraceTest,
                         ::testing::Values("first", "plugin_first", "pod", "init", "kubelet_restart",
                                           "daemon_restart", "daemon_killed", "two_daemons"));

TEST_F(TraceReplayTest, OneOfTheStandInsIsReplayedFromItsText) {
  std::optional<Trace> recorded;
  ASSERT_TRUE(Eventually([&] { return (recorded = RecordStandIn()).has_value() || HasFailure(); }));
  ASSERT_FALSE(HasFailure());
  const auto trace = ParseTrace(TraceAsText(*recorded), "recorded");
  ASSERT_TRUE(trace) << Describe(trace.error());
  ASSERT_EQ(trace->events.size(), recorded->events.size());
  const auto played = Replay(*trace);
  EXPECT_TRUE(played) << Describe(played.error());
}

// A comparison that lets everything pass proves nothing.
TEST_F(TraceReplayTest, ATamperedOneFails) {
  const auto pod = ReadTrace(std::string(TRACES) + "/pod.jsonl");
  ASSERT_TRUE(pod) << Describe(pod.error());
  const auto tampered = [&](const std::string& call, const std::string& from, const std::string& to) {
    Trace trace = *pod;
    for (TraceEvent& event : trace.events) {
      if (event.call != call) continue;
      std::string text = event.response.dump();
      const auto at = text.find(from);
      EXPECT_NE(at, std::string::npos) << call;
      event.response = nlohmann::json::parse(text.replace(at, from.size(), to));
      return trace;
    }
    ADD_FAILURE() << call << " is not in the trace";
    return trace;
  };
  const auto expect_conflict = [&](const Trace& trace, const std::string& at) {
    const auto played = Replay(trace);
    ASSERT_FALSE(played) << at;
    EXPECT_EQ(played.error().code, ErrorCode::kConflict) << Describe(played.error());
    EXPECT_NE(Describe(played.error()).find("kubelet's " + at), std::string::npos)
        << Describe(played.error());
    daemons_.clear();
  };
  expect_conflict(tampered("GetPreferredAllocation", "0000:43:02.1", "0000:43:02.3"),
                  "GetPreferredAllocation");
  expect_conflict(tampered("Allocate", "PCIDEVICE_RAILHEAD_IO_A", "PCIDEVICE_OTHER"), "Allocate");
  Trace passed = *pod;
  for (TraceEvent& event : passed.events) event.error.reset();
  expect_conflict(passed, "PreStartContainer");
}

TEST_F(TraceReplayTest, OneThatExpectsMoreThanComesFails) {
  auto trace = ReadTrace(std::string(TRACES) + "/first.jsonl");
  ASSERT_TRUE(trace) << Describe(trace.error());
  trace->events.push_back(trace->events.back());
  const auto played = Replay(*trace, std::chrono::seconds(5));
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kTimeout) << Describe(played.error());
}

TEST(TraceTest, SaysWhichLineIsBroken) {
  const auto broken = ParseTrace("{\"trace\":1}\n{\"from\":\"moon\",\"call\":\"x\"}\n", "t");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("line 2"), std::string::npos) << broken.error().message;
  EXPECT_FALSE(ParseTrace("{\"from\":\"node\",\"call\":\"x\"}\n", "t")) << "no first line";
  EXPECT_FALSE(ParseTrace("{\"trace\":1}\n", "t")) << "nothing in it";
}

}  // namespace
}  // namespace railhead::testing
