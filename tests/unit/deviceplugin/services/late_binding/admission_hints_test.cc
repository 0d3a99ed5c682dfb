// For which pod's accelerators preferred allocation chooses devices.
#include "deviceplugin/services/late_binding/admission_hints.h"

#include <gtest/gtest.h>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/node/resources/preferred.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::testing {
namespace {

using std::chrono::seconds;

// Two GPUs and a NIC on each of four switches; a VF each, and one pool of them all.
class AdmissionHintsTest : public ::testing::Test {
 protected:
  AdmissionHintsTest() : machine_(MakePcieA100(sysfs_)) {
    std::string rails;
    for (std::size_t i = 0; i < machine_.nics.size(); ++i) {
      vfs_.push_back(sysfs_.AddVfs(machine_.nics[i], 1).front());
      rails += std::string(i == 0 ? "" : ",") + R"({"name":"rail)" + std::to_string(i) + R"(","pf":")" +
               machine_.nics[i] + R"("})";
    }
    const auto fabric = ParseFabric(
        R"({"version":1,"rails":[)" + rails + R"(],"pools":[{"resource":"a.io/roce"}]})", "fabric.json");
    EXPECT_TRUE(fabric) << Describe(fabric.error());
    const auto inventory = *inventory::Discover(sysfs_.root(), {});
    pool_ = BuildPools(resources::ResourcesOfFabric(*fabric, *inventory)->specs, *inventory).front();
    topology_ = *topology::Topology::Read(sysfs_.root(), *inventory, {});
    ids_ = std::make_shared<const topology::AcceleratorIds>(IdsOf(sysfs_.root(), *topology_, {}));
  }

  void Gives(const std::string& pod, const std::string& resource, std::vector<std::string> ids) {
    given_.push_back({"ns/" + pod, "c", resource, std::move(ids)});
  }
  void GivesGpu(const std::string& pod, std::size_t gpu) {
    Gives(pod, "nvidia.com/gpu", {machine_.accelerators[gpu]});
  }
  void Update() { hints_.Update(topology_, ids_, now_); }
  // The device that a pod with one device would get, if all are available.
  std::string Preferred() {
    resources::PreferHints hints;
    hints.paths = hints_.For(*pool_, now_);
    hinted_ = !hints.paths.empty();
    return Prefer(*pool_, vfs_, {}, 1, hints).front();
  }

  FakeSysfs sysfs_;
  FakeMachine machine_;
  std::vector<std::string> vfs_;  // by switch
  std::shared_ptr<const resources::ResourcePool> pool_;
  std::shared_ptr<const topology::Topology> topology_;
  std::shared_ptr<const topology::AcceleratorIds> ids_;
  std::vector<kubelet::AllocatedDevices> given_;
  bool fails_ = false;
  int asked_ = 0;
  bool hinted_ = false;
  late_binding::AdmissionHints hints_{[this]() -> Result<std::vector<kubelet::AllocatedDevices>> {
    ++asked_;
    if (fails_) return Fail(ErrorCode::kTimeout, "kubelet is busy");
    return given_;
  }};
  late_binding::AdmissionHints::Clock::time_point now_ = late_binding::AdmissionHints::Clock::now();
};

TEST_F(AdmissionHintsTest, TheGpuOfThePodWhicheverItIs) {
  for (std::size_t gpu = 0; gpu < machine_.accelerators.size(); ++gpu) {
    given_.clear();
    Update();
    GivesGpu("new-" + std::to_string(gpu), gpu);
    EXPECT_EQ(Preferred(), vfs_[gpu / 2]) << "GPU " << gpu;
  }
}

TEST_F(AdmissionHintsTest, PodsThatWereThereBeforeAreNotMeant) {
  GivesGpu("old", 0);
  Update();
  GivesGpu("new", 5);
  EXPECT_EQ(Preferred(), vfs_[2]);
  now_ += seconds(60);
  GivesGpu("newer", 3);
  EXPECT_EQ(Preferred(), vfs_[1]);
}

TEST_F(AdmissionHintsTest, OfTwoNewOnesTheOneThatLacksTheResource) {
  Update();
  GivesGpu("done", 7);
  Gives("done", "a.io/roce", {vfs_[3]});
  GivesGpu("new", 4);
  EXPECT_EQ(Preferred(), vfs_[2]);
}

TEST_F(AdmissionHintsTest, OtherwiseTheGpusThatNobodyHas) {
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    if (gpu != 6) GivesGpu("old-" + std::to_string(gpu), gpu);
  }
  Update();
  EXPECT_EQ(Preferred(), vfs_[3]) << "the NIC was asked for first";
}

TEST_F(AdmissionHintsTest, AllTakenSaysNothing) {
  for (std::size_t gpu = 0; gpu < 8; ++gpu) GivesGpu("old-" + std::to_string(gpu), gpu);
  Update();
  EXPECT_EQ(Preferred(), vfs_[0]);
  EXPECT_FALSE(hinted_);
}

TEST_F(AdmissionHintsTest, WithoutAnAnswerAnyWillDo) {
  Update();
  fails_ = true;
  EXPECT_EQ(Preferred(), vfs_[0]);
  EXPECT_FALSE(hinted_);
}

TEST_F(AdmissionHintsTest, ABusyKubeletInBetweenMakesNoPodNew) {
  GivesGpu("old", 0);
  Update();
  GivesGpu("new", 5);
  fails_ = true;
  Update();
  fails_ = false;
  EXPECT_EQ(Preferred(), vfs_[2]);
}

TEST_F(AdmissionHintsTest, ABusyKubeletAtTheFirstLookIsNoReasonToForgetTheGpus) {
  fails_ = true;
  Update();
  fails_ = false;
  GivesGpu("new", 2);
  EXPECT_EQ(Preferred(), vfs_[1]);
}

TEST_F(AdmissionHintsTest, KubeletIsNotAskedWhereNothingDependsOnIt) {
  EXPECT_EQ(Preferred(), vfs_[0]) << "before the first update";
  hints_.Update(topology_, nullptr, now_);
  EXPECT_EQ(Preferred(), vfs_[0]);
  resources::ResourcePool one = *pool_;
  one.members.resize(1);
  Update();
  const int before = asked_;
  EXPECT_TRUE(hints_.For(one, now_).empty());
  EXPECT_EQ(asked_, before);
}

}  // namespace
}  // namespace railhead::testing
