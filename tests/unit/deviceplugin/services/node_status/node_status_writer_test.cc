// Which events follow from two states, and how many of them are sent.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/services/node_status/event_object.h"
#include "deviceplugin/services/node_status/health_events.h"
#include "tests/unit/deviceplugin/services/node_status/support.h"

namespace railhead::testing {
namespace {

node_status::NodeStatus Now(std::vector<health::DeviceHealth> devices) {
  node_status::NodeStatus now;
  now.devices = std::move(devices);
  node_status::PodDevice pod;
  pod.pod_namespace = "team";
  pod.pod = "train-0";
  pod.uid = "u1";
  pod.interface = "net1";
  pod.rail = "rail0";
  now.in_pods[kVfA] = pod;
  return now;
}

TEST(EventsTest, OfThePodThatHasTheDeviceAndOfTheNode) {
  const std::vector<health::DeviceHealth> well = {PfHealth(kPfA, "pf0"), VfHealth(kVfA, kPfA)};
  const std::vector<health::DeviceHealth> unhealthy = {PfHealth(kPfA, "pf0", {NoCarrier()}),
                                                       VfHealth(kVfA, kPfA, {NoCarrier()})};
  const auto events = EventsBetween(well, Now(unhealthy));
  ASSERT_EQ(events.size(), 2U) << "the VF's trouble is the PF's: one event of the node";
  EXPECT_EQ(events[0].message, "PF pf0 (0000:43:00.0) is unhealthy: PF pf0 (0000:43:00.0) has no carrier");
  EXPECT_TRUE(events[0].pod.empty());
  EXPECT_EQ(events[1].pod, "train-0");
  EXPECT_EQ(events[1].uid, "u1");
  EXPECT_EQ(events[1].message,
            "device 0000:43:02.0 (net1, rail0) is unhealthy: PF pf0 (0000:43:00.0) has no carrier");
  for (const node_status::HealthEvent& event : events) {
    EXPECT_TRUE(event.warning);
    EXPECT_EQ(event.reason, "RailDeviceUnhealthy");
  }
  const auto back = EventsBetween(unhealthy, Now(well));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].message, "PF pf0 (0000:43:00.0) is healthy again");
  EXPECT_FALSE(back[1].warning);
}

TEST(EventsTest, AVfsOwnTroubleIsTheNodesToo) {
  const health::HealthReason unbound =
      Because(health::HealthRule::kUnbound, kVfA, "VF is bound to no driver");
  const auto events = EventsBetween({VfHealth(kVfA, kPfA)}, Now({VfHealth(kVfA, kPfA, {unbound})}));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].message, "VF 0000:43:02.0 is unhealthy: VF is bound to no driver");
}

TEST(EventsTest, NothingOfWhatIsNewGoneOrTheSame) {
  const health::DeviceHealth unhealthy = PfHealth(kPfA, "pf0", {NoCarrier()});
  EXPECT_TRUE(EventsBetween({}, Now({unhealthy})).empty());
  EXPECT_TRUE(EventsBetween({unhealthy}, Now({})).empty());
  EXPECT_TRUE(EventsBetween({unhealthy}, Now({unhealthy})).empty());
}

TEST(EventsTest, ARefusedFabricIsTheNodes) {
  const auto event = node_status::EventOfRefusedFabric("/rails/0/vlan: is wrong");
  EXPECT_TRUE(event.pod.empty());
  EXPECT_TRUE(event.warning);
  EXPECT_EQ(event.reason, "FabricRefused");
  EXPECT_EQ(event.message, "a changed fabric is not in force: /rails/0/vlan: is wrong");
  EXPECT_LT(node_status::EventOfRefusedFabric(std::string(5000, 'x')).message.size(), 2000U);
}

TEST(EventGateTest, TheSameOnceInTenMinutes) {
  node_status::EventGate gate;
  node_status::HealthEvent event;
  event.message = "a";
  const node_status::EventGate::Clock::time_point start{std::chrono::hours(1)};
  EXPECT_TRUE(gate.Take(event, start));
  EXPECT_FALSE(gate.Take(event, start + std::chrono::minutes(9)));
  event.message = "b";
  EXPECT_TRUE(gate.Take(event, start + std::chrono::minutes(9)));
  event.message = "a";
  EXPECT_TRUE(gate.Take(event, start + std::chrono::minutes(10)));
}

TEST(EventGateTest, ABurstAndThenOneInHalfAMinute) {
  node_status::EventGate gate;
  const node_status::EventGate::Clock::time_point start{std::chrono::hours(1)};
  int sent = 0;
  int at_once = 0;
  // A link of every device flaps each second, for an hour.
  for (int second = 0; second < 3600; ++second) {
    for (int device = 0; device < 8; ++device) {
      node_status::HealthEvent event;
      event.message = std::to_string(second) + "/" + std::to_string(device);
      sent += gate.Take(event, start + std::chrono::seconds(second)) ? 1 : 0;
    }
    if (second == 10) at_once = sent;
  }
  EXPECT_EQ(at_once, node_status::EventGate::kBurst);
  EXPECT_EQ(sent, node_status::EventGate::kBurst + 119) << "3599 s / 30 s";
  node_status::HealthEvent later;
  later.message = "later";
  EXPECT_TRUE(gate.Take(later, start + std::chrono::hours(24)));
}

TEST(EventObjectTest, IsOfThePodsNamespaceOrOfDefault) {
  node_status::HealthEvent event;
  event.warning = true;
  event.message = "m\xff";
  const auto time = std::chrono::system_clock::from_time_t(1772366410);
  auto object = nlohmann::json::parse(EventObject(event, "gpu-001", time, 0xab));
  EXPECT_EQ(object["metadata"]["namespace"], "default");
  EXPECT_EQ(object["metadata"]["name"], "gpu-001.00000000000000ab");
  EXPECT_EQ(object["involvedObject"]["kind"], "Node");
  EXPECT_EQ(object["involvedObject"]["uid"], "gpu-001");
  EXPECT_EQ(object["type"], "Warning");
  EXPECT_EQ(object["lastTimestamp"], "2026-03-01T12:00:10Z");
  event.pod_namespace = "team";
  event.pod = std::string(253, 'p');
  object = nlohmann::json::parse(EventObject(event, "gpu-001", time, 1));
  EXPECT_EQ(object["metadata"]["namespace"], "team");
  EXPECT_EQ(object["involvedObject"]["namespace"], "team");
  EXPECT_FALSE(object["involvedObject"].contains("uid"));
  EXPECT_EQ(object["metadata"]["name"].get<std::string>().size(), 253U);
}

}  // namespace
}  // namespace railhead::testing
