// What an argument of a command names.
#include "deviceplugin/tools/railctl/subject.h"

#include <algorithm>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/rdma_test/plan.h"
#include "tests/unit/deviceplugin/tools/railctl/pods_node.h"

namespace railhead::testing {
namespace {

using railctl::FindSubject;
using railctl::Subject;
using railctl::SubjectKind;

class SubjectTest : public PodsNode {
 protected:
  void SetUp() override {
    PodsNode::SetUp();
    AttachTwoPods();
  }
  // "VF 0000:43:02.1", or the error.
  std::string Found(const std::string& what) {
    const auto subject = FindSubject(root_, what);
    return subject ? subject->Title() : Describe(subject.error());
  }
};

TEST_F(SubjectTest, ARailAndItsPfByAllTheirNames) {
  EXPECT_EQ(Found("rail0"), "rail rail0");
  const auto rail = FindSubject(root_, "rail0");
  ASSERT_EQ(rail->devices.size(), 5U) << "the PF and four VFs";
  EXPECT_EQ(rail->devices.front(), kPf0);
  EXPECT_EQ(rail->containers, std::vector<std::string>{kContainerA});
  for (const char* name : {"pf0", "mlx5_0", "0000:43:00.0", "43:00.0", "0c:42:a1:00:00:01",
                           "0C:42:A1:00:00:01", "leaf1/Ethernet1/3"})
    EXPECT_EQ(Found(name), std::string("PF ") + kPf0) << name;
}

TEST_F(SubjectTest, AVfOnTheHostAndInAPod) {
  EXPECT_EQ(Found("pf0v0"), "VF " + vfs0_[0]);
  EXPECT_EQ(Found("pf0_rdma0"), "VF " + vfs0_[0]);
  // The host no longer sees these names.
  for (const std::string& name :
       {std::string("host1"), std::string("mlx5_71"), std::string("0c:42:a1:00:01:01")})
    EXPECT_EQ(Found(name), "VF " + vfs0_[1]) << name;
  EXPECT_EQ(FindSubject(root_, vfs0_[1])->containers, std::vector<std::string>{kContainerA});
  EXPECT_TRUE(FindSubject(root_, vfs0_[0])->containers.empty());
}

TEST_F(SubjectTest, APodAndItsContainer) {
  for (const char* name : {"train/worker-0", "uid-worker-0"})
    EXPECT_EQ(Found(name), "pod train/worker-0") << name;
  EXPECT_EQ(FindSubject(root_, "train/worker-0")->devices, std::vector<std::string>{vfs0_[1]});
  for (const char* name : {kContainerA, "aaaa1", "/run/netns/aaaa1111"})
    EXPECT_EQ(Found(name), std::string("container ") + kContainerA) << name;
}

TEST_F(SubjectTest, APodThatOnlyKubeletKnows) {
  WriteCheckpoint("uid-new", vfs1_[0]);
  EXPECT_EQ(Found("uid-new"), "pod uid-new");
  EXPECT_EQ(FindSubject(root_, "uid-new")->devices, std::vector<std::string>{vfs1_[0]});
}

TEST_F(SubjectTest, AnAddressAndWhoHasIt) {
  const auto held = FindSubject(root_, "10.100.0.7");
  EXPECT_EQ(held->kind, SubjectKind::kAddress);
  EXPECT_EQ(held->devices, std::vector<std::string>{vfs0_[1]});
  EXPECT_EQ(held->containers, std::vector<std::string>{kContainerA});
  EXPECT_TRUE(FindSubject(root_, "fd00::1")->containers.empty()) << "nobody has it";
}

TEST_F(SubjectTest, AContainerOfWhichOnlyTheAddressStoreKnows) {
  Allocate("cccc3333");
  EXPECT_EQ(Found("cccc"), "container cccc3333");
}

TEST_F(SubjectTest, SeveralThings) {
  const auto both = FindSubject(root_, "aaaa");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(both.error().message, "'aaaa' names 2 things: container aaaa1111, container aaaa2222");
  // A network device that is called as the rail of another PF.
  sysfs_.Write("/etc/railhead/fabric.json",
               R"({"version": 1, "rails": [{"name": "pf1", "pf": "pf0", "subnet": "10.100.0.0/24"}]})");
  EXPECT_EQ(FindSubject(root_, "pf1").error().message,
            std::string("'pf1' names 2 things: rail pf1, PF ") + kPf1);
}

TEST_F(SubjectTest, ARailThatIsCalledAsItsOwnPfIsOneThing) {
  sysfs_.Write("/etc/railhead/fabric.json",
               R"({"version": 1, "rails": [{"name": "pf0", "pf": "pf0", "subnet": "10.100.0.0/24"}]})");
  EXPECT_EQ(Found("pf0"), "rail pf0");
}

TEST_F(SubjectTest, WhatTheNodeDoesNotHave) {
  const auto rail = FindSubject(root_, "rail9");
  ASSERT_FALSE(rail);
  EXPECT_EQ(rail.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(rail.error().message, "nothing on this node is called 'rail9'");
  EXPECT_NE(rail.error().hint.find("did you mean rail0, rail1?"), std::string::npos) << rail.error().hint;
  EXPECT_NE(Found("zzzzzzzz").find("give a rail, PF, VF"), std::string::npos);
  EXPECT_FALSE(FindSubject(root_, ""));
}

TEST_F(SubjectTest, WhatCannotBeReadHidesNothingElse) {
  sysfs_.Write("/run/railhead/lldp.json", "{");
  sysfs_.Write("/etc/railhead/fabric.json", "{");
  EXPECT_EQ(Found("pf0"), std::string("PF ") + kPf0);
  const std::string error = Found("rail0");
  EXPECT_NE(error.find("not searched: "), std::string::npos) << error;
  EXPECT_NE(error.find("fabric.json"), std::string::npos) << error;
  EXPECT_NE(error.find("lldp.json"), std::string::npos) << error;
}

// The commands that take such an argument.
TEST_F(SubjectTest, CommandsTakeEveryName) {
  for (const char* name : {"leaf1/Ethernet1/3", "mlx5_0"}) {
    EXPECT_EQ(Run({"drain", name}).status, 0) << name;
    EXPECT_EQ(Run({"undrain", "rail0"}).status, 0) << name;
  }
  const auto refused = Run({"drain", "train/worker-0"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find(vfs0_[1]), std::string::npos) << refused.err;
  for (const char* name : {"train/worker-0", "host1", "10.100.0.7", "aaaa1"}) {
    const auto health = Run({"health", name});
    EXPECT_EQ(health.status, 0) << health.err;
    EXPECT_NE(health.out.find(vfs0_[1]), std::string::npos) << health.out;
    EXPECT_EQ(health.out.find(vfs0_[0]), std::string::npos) << health.out;
    const auto journal = Run({"journal", "show", name});
    EXPECT_EQ(journal.status, 0) << journal.err;
    EXPECT_NE(journal.out.find(kContainerA), std::string::npos) << journal.out;
    EXPECT_EQ(journal.out.find(kContainerB), std::string::npos) << journal.out;
  }
  const std::string address = Allocate(kContainerA);
  for (const std::string& name : {std::string("train/worker-0"), vfs0_[1], address})
    EXPECT_NE(Run({"ipam", "show", name}).out.find(address), std::string::npos) << name;
  const auto no_config = Run({"nccl", "show", "train/worker-0"});
  EXPECT_EQ(no_config.status, 1);
  EXPECT_NE(no_config.err.find("the pod train/worker-0 has no NCCL configuration"), std::string::npos)
      << no_config.err;
}

TEST_F(SubjectTest, EndsOfRdmaTests) {
  const auto ends = railctl::FindTestEnds(root_, {"host", "train/worker-0", "10.101.0.7@mlx5_72"});
  ASSERT_TRUE(ends) << Describe(ends.error());
  EXPECT_EQ((*ends)[1].name, "train/worker-0");
  EXPECT_EQ((*ends)[1].netns, "/run/netns/aaaa1111");
  EXPECT_EQ((*ends)[2].name, "10.101.0.7@mlx5_72");
  EXPECT_EQ((*ends)[2].rails.at(0).rail, "rail1");
  EXPECT_EQ(railctl::FindTestEnds(root_, {"pf0"}).error().message,
            std::string("the PF ") + kPf0 + " has no attachment");
}

}  // namespace
}  // namespace railhead::testing
