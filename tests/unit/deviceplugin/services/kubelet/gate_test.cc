#include "cni/state/journal.h"
#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/services/kubelet/handlers.h"
#include "netns/base/node.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

class GateTest : public TwoRails {
 protected:
  void Allocate(const std::vector<std::string>& ids) {
    const auto done = resources::Allocator(root_).Allocate(*Pool(), ids);
    ASSERT_TRUE(done) << Describe(done.error());
  }
  void Attach(const std::string& id, const std::string& container, Phase phase = Phase::kDone) {
    JournalEntry entry;
    entry.key = {"net-" + id, container, "net1"};
    entry.phase = phase;
    entry.boot_id = BootId(root_).value();
    AttachedLink link;
    link.device = id;
    link.host_name = "pf0v0";
    link.pod_name = "net1";
    entry.links.push_back(link);
    const auto written = Journal(root_).Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
  }
  // The refusal's text; "" when it passes.
  std::string Check(const std::vector<std::string>& ids, const std::string& more = "") const {
    const auto passed = kubelet::CheckAttached(root_, *Pool(more), ids);
    return passed ? "" : Describe(passed.error());
  }
};

TEST_F(GateTest, PassesWhenAllSiblingsAreInOneSandbox) {
  Allocate({vfs0_[0], vfs1_[0]});
  Attach(vfs0_[0], "sandbox");
  Attach(vfs1_[0], "sandbox");
  EXPECT_EQ(Check({vfs1_[0], vfs0_[0]}), "");
}

TEST_F(GateTest, NamesTheMissingDeviceAndTheAnnotation) {
  Allocate({vfs0_[0], vfs1_[0]});
  Attach(vfs0_[0], "sandbox");
  const std::string text = Check({vfs0_[0], vfs1_[0]});
  EXPECT_NE(text.find("device " + vfs1_[0]), std::string::npos) << text;
  EXPECT_NE(text.find("is attached to no pod"), std::string::npos) << text;
  EXPECT_NE(text.find("k8s.v1.cni.cncf.io/networks must name 2 networks"), std::string::npos) << text;
  EXPECT_NE(text.find("k8s.v1.cni.cncf.io/resourceName: railhead.io/roce"), std::string::npos) << text;
}

TEST_F(GateTest, AsksForSiblingsThatKubeletDoesNotName) {
  Allocate({vfs0_[0], vfs1_[0]});
  Attach(vfs0_[0], "sandbox");
  EXPECT_NE(Check({vfs0_[0]}).find(vfs1_[0]), std::string::npos);
  // The next allocation of the device alone ends that.
  Allocate({vfs0_[0]});
  EXPECT_EQ(Check({vfs0_[0]}), "");
}

TEST_F(GateTest, AnUnfinishedAttachmentDoesNotCount) {
  Allocate({vfs0_[0]});
  Attach(vfs0_[0], "sandbox", Phase::kPlanned);
  EXPECT_NE(Check({vfs0_[0]}).find("not finished (sandbox sandbox)"), std::string::npos) << Check({vfs0_[0]});
}

TEST_F(GateTest, DevicesOfTwoSandboxesDoNotPass) {
  Allocate({vfs0_[0], vfs1_[0]});
  Attach(vfs0_[0], "new");
  Attach(vfs1_[0], "old");
  const std::string text = Check({vfs0_[0], vfs1_[0]});
  EXPECT_NE(text.find("sandbox old"), std::string::npos) << text;
  EXPECT_NE(text.find("to new"), std::string::npos) << text;
}

TEST_F(GateTest, AnAttachmentOfAnEarlierBootDoesNotCount) {
  Allocate({vfs0_[0]});
  Attach(vfs0_[0], "sandbox");
  EXPECT_EQ(Check({vfs0_[0]}), "");
  sysfs_.Write("/proc/sys/kernel/random/boot_id", "another boot\n");
  EXPECT_NE(Check({vfs0_[0]}), "");
}

TEST_F(GateTest, PoolsWithoutHandoffPass) {
  EXPECT_EQ(Check({vfs0_[0]}, R"(, "handoff": "off")"), "");
}

TEST_F(GateTest, AskingForNothingIsAnError) {
  EXPECT_NE(Check({}), "");
}

}  // namespace
}  // namespace railhead::testing
