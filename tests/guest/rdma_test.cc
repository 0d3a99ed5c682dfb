// RDMA devices, soft RoCE and GID tables on the real kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/nl/counters.h"
#include "netns/ns/netns.h"
#include "netns/ns/run_in_namespace.h"
#include "tests/support/eventually.h"
#include "tests/support/netns/guest_fixture.h"

namespace railhead::testing {
namespace {

// First in this file, since the module must not be loaded yet.
TEST(Rxe, SaysSoWhenTheModuleCannotBeLoaded) {
  LinuxKernel kernel{Root()};
  ASSERT_FALSE(Exists("/sys/module/rdma_rxe"));
  const std::string loader = Must(ReadAttribute("/proc/sys/kernel/modprobe")).value();
  Must(WriteAttribute("/proc/sys/kernel/modprobe", "/bin/false"));
  auto rdma = Must(kernel.OpenRdma(Must(kernel.HostNetns())));
  const auto refused = rdma->AddRxe("rxe0", "pf0");
  Must(WriteAttribute("/proc/sys/kernel/modprobe", loader));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().hint, "is soft RoCE available? modprobe rdma_rxe");
  EXPECT_TRUE(Must(rdma->ListDevices()).empty());
}

class RdmaTest : public GuestTest {
 protected:
  RdmaTest() {
    Must(route_->MoveLink(vf_.index, pod_, "net1", std::nullopt));
    link_ = GetLink(*pod_route_, "net1");
    BringPodUp(*pod_route_, link_.index, "10.100.0.10/24");
  }
  ~RdmaTest() override {
    Must(pod_rdma_->DeleteRxe("rxe_test"));
    if (const auto there = Must(pod_route_->FindLinkOfDevice(kBdf))) {
      LinkChange down;
      down.up = false;
      Must(pod_route_->ChangeLink(there->index, down));
      Must(pod_route_->MoveLink(there->index, host_, vf_.name, std::nullopt));
    }
    EXPECT_TRUE(Must(rdma_->ListDevices()).empty());
  }

  // A device that is being removed is no longer listed, but keeps its name until its last user is gone
  // (ib_unregister_device() in drivers/infiniband/core/device.c): under load the next test finds it taken.
  void AddSoftRoce() {
    ASSERT_TRUE(Eventually([&] {
      const auto added = pod_rdma_->AddRxe("rxe_test", "net1");
      EXPECT_TRUE(added || added.error().hint.starts_with("RDMA device names are node-wide"));
      return added.has_value();
    }));
  }

  std::vector<GidEntry> Gids() { return Must(kernel_.ReadGids(pod_, "rxe_test")).value(); }
  bool HasGid(const char* address) {
    return FindGid(Gids(), *IpAddress::Parse(address), GidType::kRoceV2, "net1").has_value();
  }

  NetNs pod_ = MakeNetns();
  std::unique_ptr<RouteApi> pod_route_ = OpenRoute(pod_);
  std::unique_ptr<RdmaApi> rdma_ = Must(kernel_.OpenRdma(host_));
  std::unique_ptr<RdmaApi> pod_rdma_ = Must(kernel_.OpenRdma(pod_));
  Link link_;
};

TEST_F(RdmaTest, ModeIsShared) {
  EXPECT_EQ(Must(rdma_->NetnsMode()), RdmaNetnsMode::kShared);
  EXPECT_EQ(Must(pod_rdma_->NetnsMode()), RdmaNetnsMode::kShared);
}

TEST_F(RdmaTest, SoftRoceInThePod) {
  // The kernel loads rdma_rxe by itself.
  AddSoftRoce();
  auto devices = Must(pod_rdma_->ListDevices());
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].name, "rxe_test");
  EXPECT_EQ(devices[0].netdev, "net1");
  EXPECT_EQ(devices[0].netdev_index, link_.index);
  EXPECT_TRUE(Eventually([&] { return Must(pod_rdma_->ListDevices()).at(0).active; }));
  // Shared mode: the node sees the device, but not a netdev of another namespace.
  devices = Must(rdma_->ListDevices());
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].netdev, "");
  EXPECT_EQ(devices[0].netdev_index, 0);

  EXPECT_TRUE(Must(pod_rdma_->DeleteRxe("rxe_test")));
  EXPECT_FALSE(Must(pod_rdma_->DeleteRxe("rxe_test")));
  EXPECT_TRUE(Must(rdma_->ListDevices()).empty());
}

// In shared mode, from the pod and from the node.
TEST_F(RdmaTest, CountersHaveTheDriversNames) {
  AddSoftRoce();
  const std::uint32_t index = Must(pod_rdma_->ListDevices()).at(0).index;
  for (const NetNs* from : {&pod_, &host_}) {
    RdmaCounters counters = Must(RdmaCounters::Open(*from));
    const auto read = Must(counters.Read(index));
    ASSERT_TRUE(read);
    EXPECT_TRUE(
        std::any_of(read->begin(), read->end(), [](const auto& one) { return one.first == "sent_pkts"; }));
    EXPECT_EQ(Must(counters.Read(index + 100)), std::nullopt);
  }
}

TEST_F(RdmaTest, NamesAreNodeWide) {
  AddSoftRoce();
  const auto same_link = pod_rdma_->AddRxe("rxe_other", "net1");
  ASSERT_FALSE(same_link);
  EXPECT_EQ(same_link.error().code, ErrorCode::kExists);
  EXPECT_NE(same_link.error().hint.find("net1"), std::string::npos) << same_link.error().hint;
  const auto elsewhere = rdma_->AddRxe("rxe_test", "pf1");
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, ErrorCode::kExists) << elsewhere.error().message;
  EXPECT_NE(elsewhere.error().hint.find("rxe_test"), std::string::npos) << elsewhere.error().hint;
  const auto nowhere = pod_rdma_->AddRxe("rxe_other", "net9");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
}

TEST_F(RdmaTest, GidsFollowTheAddresses) {
  AddSoftRoce();
  ASSERT_TRUE(Eventually([&] { return HasGid("10.100.0.10"); })) << Describe(Gids());
  Must(pod_route_->AddAddress(link_.index, *IpPrefix::Parse("10.100.0.11/24")));
  Must(pod_route_->AddAddress(link_.index, *IpPrefix::Parse("10.100.0.12/24")));
  ASSERT_TRUE(Eventually([&] { return HasGid("10.100.0.11") && HasGid("10.100.0.12"); })) << Describe(Gids());
  // A deleted address makes a hole. The rest of the table must still be read.
  Must(pod_route_->DeleteAddress(link_.index, *IpPrefix::Parse("10.100.0.11/24")));
  ASSERT_TRUE(Eventually([&] { return !HasGid("10.100.0.11"); })) << Describe(Gids());
  EXPECT_TRUE(HasGid("10.100.0.12")) << Describe(Gids());
  EXPECT_TRUE(HasGid("10.100.0.10")) << Describe(Gids());
  EXPECT_EQ(Must(kernel_.ReadGids(pod_, "rxe_other")), std::nullopt);

  GidRequest request{*IpAddress::Parse("10.100.0.12"), GidType::kRoceV2, "net1"};
  EXPECT_EQ(Must(kernel_.WaitGid(pod_, "rxe_test", request, NetDeadline())), FindGid(Gids(), request));
  request.type = GidType::kRoceV1;
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(Must(kernel_.WaitGid(pod_, "rxe_test", request, soon)), std::nullopt);
}

// Exclusive mode would need this: the same table through the pod's own sysfs.
TEST_F(RdmaTest, GidsThroughThePodsSysfs) {
  AddSoftRoce();
  ASSERT_TRUE(Eventually([&] { return HasGid("10.100.0.10"); })) << Describe(Gids());
  const auto text = Must(RunInNamespace(pod_, NetDeadline(), []() -> Result<std::string> {
    return EncodeGidTable(RH_TRY(ReadGidTable(Root(), "rxe_test", 1)));
  }));
  EXPECT_EQ(Must(DecodeGidTable(text)).value(), Gids());
}

TEST_F(RdmaTest, MovingTheNetdevEndsItsDevice) {
  AddSoftRoce();
  Must(pod_route_->MoveLink(link_.index, host_, vf_.name, std::nullopt));
  EXPECT_TRUE(Eventually([&] { return Must(rdma_->ListDevices()).empty(); }));
}

TEST_F(RdmaTest, MovingADeviceThatCannotSaysSo) {
  AddSoftRoce();
  const NetNs other = MakeNetns();
  const auto refused = pod_rdma_->MoveDevice("rxe_test", other);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("moving RDMA device rxe_test"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("exclusive"), std::string::npos)
      << refused.error().message << "; " << refused.error().hint;
  EXPECT_EQ(pod_rdma_->MoveDevice("rxe_none", other).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace railhead::testing
