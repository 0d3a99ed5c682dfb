// railheadd takes a changed fabric over from a directory, while pods have devices and without a restart.
#include <memory>
#include <string>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "deviceplugin/services/fabric_follow/follower.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

// A resource for each rail. `first`: the one of rail0.
std::string TwoPools(const std::string& first, const std::string& vlan) {
  return R"({"version": 1, "rails": [
    {"name": "rail0", "pf": "pf0", "vlan": )" +
         vlan + R"(}, {"name": "rail1", "pf": "pf1", "vlan": )" + vlan + R"(}], "pools": [
    {"resource": ")" +
         first + R"(", "rails": ["rail0"]}, {"resource": "a.io/rail1", "rails": ["rail1"]}]})";
}

class FollowProcessTest : public KubeletTest {
 protected:
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    sysfs_.Write("/etc/railhead/fabric.json", TwoPools("a.io/rail0", "7"));
    ASSERT_TRUE(MakeDirectories(root_.Path("/config")));
    Want(TwoPools("a.io/rail0", "7"));
    ASSERT_TRUE(kubelet_.Start());
  }
  // As kubelet does, in one step: railheadd reads it whenever it likes, and would refuse half a file.
  void Want(const std::string& fabric) {
    ASSERT_TRUE(WriteAtomic(root_.Path("/config/fabric.json"), fabric, Sync::kVolatile, 0644));
  }
  // No pass ends the pod's attachment, which has no network namespace.
  void Start() {
    daemon_ = RunDaemon({"--follow-config", "/config", "--reconcile-interval", "0"});
    ASSERT_TRUE(kubelet_.Devices("a.io/rail1", 4, Soon())) << daemon_->err();
  }
  void TearDown() override {
    if (daemon_) EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  }
  [[nodiscard]] JournalEntry Attachment() const {
    JournalEntry entry;
    entry.key = {"roce", "c1", "net1"};
    entry.boot_id = *BootId(root_);
    entry.phase = Phase::kDone;
    entry.devices.resize(1);
    entry.devices[0].device = vfs1_[0];
    entry.devices[0].pf = kPf1;
    entry.devices[0].vf = 0;
    entry.devices[0].rail = "rail1";
    entry.devices[0].pod_name = "net1";
    return entry;
  }
  bool HasVlan(const std::string& rail, int vlan) {
    return Eventually([&] {
      const auto fabric = ReadFabric(root_);
      const Rail* found = fabric && *fabric ? (*fabric)->FindRail(rail) : nullptr;
      return found != nullptr && found->vlan == vlan;
    });
  }

  DeviceManager kubelet_{directory_};
  std::unique_ptr<Process> daemon_;
};

TEST_F(FollowProcessTest, FreeRailsAtOnceAndBusyOnesAfterTheirPods) {
  ASSERT_TRUE(Journal(root_).Write(Attachment()));
  ASSERT_NO_FATAL_FAILURE(Start());
  const std::string changed = TwoPools("b.io/rail0", "8");
  Want(changed);
  EXPECT_TRUE(kubelet_.Devices("b.io/rail0", 4, Soon())) << daemon_->err();
  EXPECT_TRUE(HasVlan("rail0", 8)) << daemon_->err();
  EXPECT_EQ((*ReadFabric(root_))->FindRail("rail1")->vlan, 7);
  EXPECT_EQ(kubelet_.Registrations("a.io/rail1"), 1) << "nothing has changed for the rail's resource";
  EXPECT_TRUE(Eventually([&] {
    const auto state = fabric_follow::kFollowFile.Read(root_);
    return state && *state && (*state)->pending.size() == 1 && (*state)->pending[0].name == "rail1";
  }));

  ASSERT_TRUE(Journal(root_).Remove(Attachment()));
  EXPECT_TRUE(HasVlan("rail1", 8)) << daemon_->err();
  EXPECT_EQ(ReadFileAt(root_.Path(kFabricPath)), changed);
  EXPECT_EQ(kubelet_.Registrations("a.io/rail1"), 1);
}

TEST_F(FollowProcessTest, AChangeWhileNoneRanIsThereAtTheStart) {
  Want(TwoPools("b.io/rail0", "8"));
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(kubelet_.Registrations("a.io/rail0"), 0) << "the former resource was never offered";
  EXPECT_TRUE(HasVlan("rail1", 8));
}

TEST_F(FollowProcessTest, AnInvalidFabricIsReportedOnceAndChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Want(TwoPools("b.io/rail0", "9999"));
  const std::string said = "the changed fabric is refused";
  ASSERT_TRUE(Logs(*daemon_, said));
  Want(TwoPools("b.io/rail0", "8"));
  ASSERT_TRUE(HasVlan("rail0", 8)) << daemon_->err();
  const std::string log = daemon_->err();
  EXPECT_NE(log.find("/rails/0/vlan"), std::string::npos) << log;
  EXPECT_EQ(log.find(said), log.rfind(said)) << log;
}

}  // namespace
}  // namespace railhead::testing
