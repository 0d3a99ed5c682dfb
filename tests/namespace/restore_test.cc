// Restoring a NIC on the real kernel, out of a pod whose namespace stays. Needs root.
#include "cni/attachment/restore.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "netns/linux_kernel.h"
#include "tests/support/netns/stand_in.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {
namespace {

// A veth stands in for the VF: the kernel treats them alike when it moves them.
class RestoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sysfs_.AddPf({.address = "0000:43:00.0", .netdev = "pf0"});
    nic_ = AddVeth(pod_, "net1", wire_, "wire");
    const Link link = GetLink(*pod_route_, "net1");
    entry_.key = {"rail0", "c1", "net1"};
    entry_.netns_inode = pod_.inode();
    AttachedDevice attached;
    attached.device = sysfs_.AddVfs("0000:43:00.0", 1)[0];
    attached.before.parentless = true;
    attached.pod_name = "net1";
    attached.before.name = "pf0v0";
    attached.before.mac = link.mac;
    attached.before.link.mtu = link.mtu;
    attached.before.link.tx_queue_len = link.tx_queue_len;
    entry_.devices.push_back(attached);
  }
  Result<void> Restore() {
    return attachment::RestoreToHost(sysfs_.root(), kernel_, entry_, &pod_, NetDeadline(),
                                     [](const std::string&, const std::string&) { return Result<void>(); });
  }
  [[nodiscard]] bool InPod(const std::string& name) const {
    return Must(pod_route_->FindLink(name)).has_value();
  }

  FakeSysfs sysfs_;
  LinuxKernel kernel_{sysfs_.root()};
  NetNs wire_ = MakeNetns();
  NetNs pod_ = MakeNetns();
  std::unique_ptr<RouteApi> pod_route_ = OpenRoute(pod_);
  int nic_ = 0;
  JournalEntry entry_;
};

TEST_F(RestoreTest, WhatThePodHasPutOnItsNicIsNotLeftBehind) {
  AddMacvlan(pod_, "mv0", nic_);
  AddMacvlan(pod_, "mv1", nic_);
  AddBridge(pod_, "br0");
  const int other = AddVeth(pod_, "eth0", wire_, "other");
  AddMacvlan(pod_, "on-eth0", other);
  const auto restored = Restore();
  ASSERT_TRUE(restored) << Describe(restored.error());
  const auto host = OpenRoute(Must(NetNs::Current()));
  EXPECT_TRUE(Must(host->FindLink("pf0v0")).has_value());
  EXPECT_FALSE(InPod("net1"));
  EXPECT_FALSE(InPod("mv0")) << "it would send through the next pod's VF";
  EXPECT_FALSE(InPod("mv1"));
  EXPECT_TRUE(InPod("on-eth0")) << "that is on another one";
  EXPECT_TRUE(InPod("br0"));
}

// The earlier restore was killed when the NIC was already on the host and the macvlan still existed.
TEST_F(RestoreTest, WhatWasLeftBehindIsFoundByTheNextTry) {
  AddMacvlan(pod_, "mv0", nic_);
  Must(pod_route_->MoveLink(nic_, Must(NetNs::Current()), "pf0v0", std::nullopt));
  ASSERT_TRUE(InPod("mv0"));
  const auto restored = Restore();
  ASSERT_TRUE(restored) << Describe(restored.error());
  EXPECT_FALSE(InPod("mv0"));
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests) && ::unshare(CLONE_NEWNET) != 0) {
    std::fprintf(stderr, "cannot make a private network namespace: %s\n", std::strerror(errno));
    return 1;
  }
  return RUN_ALL_TESTS();
}
