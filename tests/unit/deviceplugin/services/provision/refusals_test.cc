// Reasons not to change a PF: each refusal states the reason, the device and the remedy, and changes nothing.
#include <linux/if_addr.h>
#include <sys/fsuid.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/attachment/device_locks.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "deviceplugin/services/provision/report.h"
#include "netns/base/files.h"
#include "netns/json/record_io.h"
#include "tests/unit/deviceplugin/services/provision/fixture.h"

namespace railhead::testing {
namespace {

namespace fs = std::filesystem;

class RefusalsTest : public ProvisionFixture {
 protected:
  void TwoVfs() {
    ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
    vfs_ = VfsOf(kPf0);
    ASSERT_EQ(vfs_.size(), 2U);
  }
  // Plan and apply refuse `provision` for rail0 with these words, and nothing changes.
  void Refused(const std::string& provision, ErrorCode code, const std::vector<std::string>& words) {
    SCOPED_TRACE(provision);
    const std::string before = kernel_.Snapshot();
    const std::size_t calls = control_.log().size();
    const provision::VfsPlan plan = Plan(provision);
    ASSERT_FALSE(plan.pfs.empty());
    ASSERT_TRUE(plan.pfs[0].refused) << PlanAsText(plan);
    const provision::PfOutcome outcome = Apply0(provision);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code, code) << Describe(*outcome.error);
    EXPECT_FALSE(outcome.error->hint.empty());
    for (const std::string& word : words) {
      EXPECT_NE(Describe(*outcome.error).find(word), std::string::npos) << Describe(*outcome.error);
      EXPECT_NE(PlanAsText(plan).find(word), std::string::npos) << PlanAsText(plan);
    }
    EXPECT_EQ(kernel_.Snapshot(), before);
    EXPECT_EQ(control_.log().size(), calls);
  }
  void Accepted(const std::string& provision) {
    const provision::PfOutcome outcome = Apply0(provision);
    EXPECT_FALSE(outcome.error) << Describe(outcome.error.value_or(Error{}));
    EXPECT_TRUE(outcome.Changed());
  }

  std::vector<std::string> vfs_;
};

TEST_F(RefusalsTest, AVfInAPod) {
  TwoVfs();
  Attach(vfs_[1], "train-0");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy,
          {"VF 1 (" + vfs_[1] + ")", "pod team/train-0", "c0ffee", "net1", "drain"});
  Refused(R"({"mac": "derived"})", ErrorCode::kBusy, {"train-0"});
  Refused(R"({"mtu": 9000})", ErrorCode::kBusy, {"train-0"});
  Refused(R"({"driver": "vfio-pci"})", ErrorCode::kBusy, {"train-0"});
}

TEST_F(RefusalsTest, AVfInAPodIsNoTroubleWhereNothingIsToBeDone) {
  TwoVfs();
  Attach(vfs_[1], "train-0");
  const provision::VfsPlan plan = Plan(R"({"vfs": 2})");
  EXPECT_FALSE(plan.pfs[0].refused);
  EXPECT_TRUE(plan.pfs[0].NothingToDo());
}

// ADD may have given it another MAC. The MAC that DEL will restore counts.
TEST_F(RefusalsTest, AVfInAPodHasTheMacThatRestoreGivesIt) {
  ASSERT_FALSE(Apply0(R"({"vfs": 2, "mac": "derived"})").error);
  vfs_ = VfsOf(kPf0);
  Attach(vfs_[1], "train-0");
  const std::string pod = kernel_.AddNamespace("pod");
  FakeNetdev* netdev = kernel_.state().OfFunction(vfs_[1]);
  ASSERT_EQ(kernel_.state().Move(*netdev, pod, "net1", std::nullopt), 0);
  ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function(kPf0), 1,
                                  {.mac = MacAddress::Parse("02:aa:00:00:00:01")}),
            0);
  kernel_.Sync();
  EXPECT_TRUE(Plan(R"({"vfs": 2, "mac": "derived"})").pfs[0].NothingToDo());
}

TEST_F(RefusalsTest, AnAttachmentThatCannotBeRead) {
  TwoVfs();
  Attach(vfs_[0], "train-0");
  sysfs_.Write("/run/railhead/attachments/c0ffee/rails@net1.json", "{");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 0", "cannot be read"});
}

TEST_F(RefusalsTest, AVfThatKubeletGaveOut) {
  TwoVfs();
  GiveOut(vfs_[0], "uid-7");
  sysfs_.Write("/var/lib/kubelet/pods/uid-7/etc-hosts", "");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 0", "uid-7"});
}

TEST_F(RefusalsTest, AVfThatKubeletGaveToAPodThatHasEndedIsFree) {
  TwoVfs();
  GiveOut(vfs_[0], "uid-7");
  sysfs_.Write("/var/lib/kubelet/pods/other/etc-hosts", "");
  Accepted(R"({"vfs": 4})");
}

// After a reboot kubelet still lists the VFs, and they do not exist.
TEST_F(RefusalsTest, WhatKubeletGaveOutBeforeARebootIsMade) {
  GiveOut("0000:43:02.0", "uid-7");
  sysfs_.Write("/var/lib/kubelet/pods/uid-7/etc-hosts", "");
  sysfs_.Write("/var/lib/railhead/allocations/0000:43:02.0.json", "{}");
  Accepted(R"({"vfs": 4})");
}

TEST_F(RefusalsTest, AVfInAnotherNamespace) {
  TwoVfs();
  const std::string elsewhere = kernel_.AddNamespace("elsewhere");
  ASSERT_EQ(kernel_.state().Move(*kernel_.state().OfFunction(vfs_[1]), elsewhere, "x", std::nullopt), 0);
  kernel_.Sync();
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 1", "another namespace"});
}

TEST_F(RefusalsTest, AVfThatAProcessDrives) {
  TwoVfs();
  for (const std::string& vf : vfs_) control_.BindTo(vf, "vfio-pci");
  sysfs_.Link("/sys/bus/pci/devices/" + vfs_[0] + "/iommu_group", "/sys/kernel/iommu_groups/58");
  sysfs_.Link("/sys/bus/pci/devices/" + vfs_[1] + "/iommu_group", "/sys/kernel/iommu_groups/59");
  const auto open_by = [&](const std::string& target) {
    std::filesystem::create_directories(sysfs_.directory() + "/proc/4711/fd");
    std::filesystem::remove(sysfs_.directory() + "/proc/4711/fd/9");
    std::filesystem::create_symlink(target, sysfs_.directory() + "/proc/4711/fd/9");
  };
  open_by("/dev/vfio/59");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 1", "process 4711", "/dev/vfio/59"});
  sysfs_.Write("/sys/bus/pci/devices/" + vfs_[0] + "/vfio-dev/vfio3/dev", "");
  open_by("/dev/vfio/devices/vfio3");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 0", "process 4711"});
  open_by("/dev/vfio/noiommu-58");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 0", "/dev/vfio/noiommu-58"});
  sysfs_.Write("/sys/bus/pci/devices/" + vfs_[1] + "/uio/uio4/name", "");
  open_by("/dev/uio4");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 1", "/dev/uio4"});
  open_by("/dev/vfio/5");
  Accepted(R"({"vfs": 4})");
}

// A program of the host, or pods that share RDMA devices, may have it open: the VF itself has stayed.
TEST_F(RefusalsTest, AVfWhoseRdmaDeviceIsOpen) {
  TwoVfs();
  sysfs_.Write("/sys/bus/pci/devices/" + vfs_[1] + "/infiniband_verbs/uverbs9/dev", "");
  std::filesystem::create_directories(sysfs_.directory() + "/proc/4711/fd");
  std::filesystem::create_symlink("/dev/infiniband/uverbs9", sysfs_.directory() + "/proc/4711/fd/9");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 1", "process 4711", "/dev/infiniband/uverbs9"});
}

TEST_F(RefusalsTest, AVfThatTheHostUses) {
  TwoVfs();
  kernel_.AddAddress(kHost, "pf0v1", "192.0.2.1/24");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 1", "192.0.2.1"});
}

TEST_F(RefusalsTest, AVfOfANetworkWhereARouterAdvertises) {
  TwoVfs();
  FakeNetdev& vf = *kernel_.state().Find(kHost, "pf0v1");
  const IpPrefix prefix = *IpPrefix::Parse("2001:db8::7/64");
  ASSERT_EQ(kernel_.state().AddAddress(vf, prefix), 0);
  vf.address_flags[prefix].flags = 0;
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 1", "2001:db8::7/64 of DHCP or a network manager"});
  vf.address_flags[prefix].flags = IFA_F_MANAGETEMPADDR;
  Accepted(R"({"vfs": 4})");
}

TEST_F(RefusalsTest, AVfWithAnInterfaceOnTop) {
  TwoVfs();
  sysfs_.AddVirtualNetdev("vlan7");
  sysfs_.AddUpper("pf0v0", "vlan7");
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"VF 0", "vlan7"});
}

TEST_F(RefusalsTest, ThePfThatCarriesTheHostLosesNoVfsButGetsThem) {
  kernel_.AddAddress(kHost, "pf0", "192.0.2.2/24");
  Accepted(R"({"vfs": 4})");
  Refused(R"({"vfs": 2})", ErrorCode::kBusy, {"192.0.2.2", "another NIC"});
  Refused(R"({"vfs": 6})", ErrorCode::kBusy, {"192.0.2.2"});
}

// VFs end the bond's RoCE LAG. An operator who wants them must permit it, for all rails or for this one.
TEST_F(RefusalsTest, APortOfABondGetsNoVfsUnlessItIsAllowed) {
  kernel_.AddVeth(kHost, "above", kHost, "peer");
  FakeNetdev* above = kernel_.state().Find(kHost, "above");
  const auto refused = [&](const std::string& more) {
    const provision::VfsPlan plan = Plan(R"({"vfs": 4)" + more + "}");
    return plan.pfs[0].refused.has_value();
  };
  for (const char* kind : {"bond", "bridge", "vrf"}) {
    above->link.kind = kind;
    for (const bool is_port : {false, true}) {
      kernel_.state().Find(kHost, "pf0")->link.master = is_port ? above->link.index : 0;
      kernel_.Sync();
      SCOPED_TRACE(std::string(kind) + (is_port ? ", a port of it" : ", beside it"));
      const bool bonded = is_port && std::string_view(kind) == "bond";
      EXPECT_EQ(refused(""), bonded);
      EXPECT_EQ(refused(R"(, "allowBonded": false)"), bonded);
      EXPECT_EQ(refused(R"(, "allowBonded": true, "rails": {"rail0": {"allowBonded": false}})"), bonded);
      EXPECT_FALSE(refused(R"(, "allowBonded": true)"));
      EXPECT_FALSE(refused(R"(, "rails": {"rail0": {"allowBonded": true}})"));
    }
  }
  above->link.kind = "bond";
  kernel_.Sync();
  Refused(R"({"vfs": 4})", ErrorCode::kBusy, {"bond above", "allowBonded", "rail0"});
  Accepted(R"({"vfs": 4, "allowBonded": true})");
}

TEST_F(RefusalsTest, APfInAPodIsNotGivenVfs) {
  const std::string pod = kernel_.AddNamespace("pod");
  Attach(kPf0, "whole-pf");
  ASSERT_EQ(kernel_.state().Move(*kernel_.state().OfFunction(kPf0), pod, "net1", std::nullopt), 0);
  kernel_.Sync();
  provision::Provision provision = Of(R"({"vfs": 0, "mtu": 9000, "mac": "derived"})");
  provision.fabric.rails[0].pfs = {kPf0};
  const auto none = PlanVfs(root_, kernel_, provision, "rail0");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->NothingToDo()) << "what is right needs nothing";
  provision.settings.all = provision::PfSettings{.vfs = 2};
  const auto plan = PlanVfs(root_, kernel_, provision, "rail0");
  ASSERT_TRUE(plan);
  ASSERT_TRUE(plan->Refused());
  EXPECT_NE(plan->pfs[0].refused->message.find("whole-pf"), std::string::npos)
      << plan->pfs[0].refused->message;
}

TEST_F(RefusalsTest, ManyUsesAreCounted) {
  ASSERT_FALSE(Apply0(R"({"vfs": 6})").error);
  for (int vf = 0; vf < 6; ++vf)
    kernel_.AddAddress(kHost, "pf0v" + std::to_string(vf), "192.0.2." + std::to_string(vf + 1) + "/24");
  Refused(R"({"vfs": 2})", ErrorCode::kBusy, {"VF 0", "VF 3", "and 2 more"});
}

TEST_F(RefusalsTest, MoreThanThePfCanHave) {
  Refused(R"({"vfs": 65})", ErrorCode::kUnsupported, {"65 VFs", "can have 64", "NUM_OF_VFS"});
}

TEST_F(RefusalsTest, APfWithoutSriov) {
  sysfs_.Remove("/sys/bus/pci/devices/" + std::string(kPf0) + "/sriov_totalvfs");
  Refused(R"({"vfs": 1})", ErrorCode::kUnsupported, {"no SR-IOV"});
}

TEST_F(RefusalsTest, APfWithoutItsDriver) {
  kernel_.state().Unbind(*kernel_.state().Function(kPf1));
  kernel_.Sync();
  const provision::VfsPlan plan = Plan(R"({"rails": {"rail1": {"vfs": 1}}})");
  ASSERT_EQ(plan.pfs.size(), 2U);
  ASSERT_TRUE(plan.pfs[1].refused);
  EXPECT_NE(plan.pfs[1].refused->message.find("no driver"), std::string::npos)
      << plan.pfs[1].refused->message;
}

TEST_F(RefusalsTest, ADriverThatTheNodeLacks) {
  Refused(R"({"vfs": 2, "driver": "vfio-pci2"})", ErrorCode::kNotFound, {"vfio-pci2", "modprobe"});
}

TEST_F(RefusalsTest, NoPermanentMacToDeriveFrom) {
  kernel_.state().OfFunction(kPf0)->link.permanent_mac = {};
  Refused(R"({"vfs": 2, "mac": "derived"})", ErrorCode::kUnsupported, {"permanent MAC", "keep"});
  Accepted(R"({"vfs": 2})");
}

TEST_F(RefusalsTest, MoreDerivedMacsThanThereAre) {
  sysfs_.Write("/sys/bus/pci/devices/" + std::string(kPf0) + "/sriov_totalvfs", "1000\n");
  Refused(R"({"vfs": 257, "mac": "derived"})", ErrorCode::kInvalid, {"257", "256"});
}

TEST_F(RefusalsTest, ARailThatTheNodeHasNoPfFor) {
  provision::Provision provision = Of(R"({"vfs": 2})");
  provision.fabric.rails[0].pfs = {"pf7"};
  const auto plan = PlanVfs(root_, kernel_, provision);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->absent_rails, std::vector<std::string>{"rail0"});
  EXPECT_FALSE(plan->Refused()) << "nodes without it are no error";
  ASSERT_EQ(plan->pfs.size(), 1U);
  EXPECT_EQ(plan->pfs[0].actual.rail, "rail1");
}

TEST_F(RefusalsTest, ARailMeansTheFirstOfItsPfsOnly) {
  provision::Provision provision = Of(R"({"vfs": 2})");
  provision.fabric.rails[0].pfs = {"pf9", "pf0", "pf1"};
  const auto plan = PlanVfs(root_, kernel_, provision);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->pfs.size(), 2U);
  EXPECT_EQ(plan->pfs[0].actual.address.ToString(), kPf0);
  EXPECT_EQ(plan->pfs[1].actual.rail, "rail1");
  provision.fabric.rails[0].pfs.clear();
  provision.fabric.rails[0].position = 1;
  const auto by_position = PlanVfs(root_, kernel_, provision);
  ASSERT_TRUE(by_position);
  ASSERT_EQ(by_position->pfs.size(), 1U) << "the PF is of the first rail that means it";
  EXPECT_EQ(by_position->pfs[0].actual.address.ToString(), kPf1);
  EXPECT_EQ(by_position->pfs[0].actual.rail, "rail0");
}

TEST_F(RefusalsTest, ARailThatIsNone) {
  const auto plan = PlanVfs(root_, kernel_, Of("{}"), "rail9");
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kNotFound);
}

// A program takes a VF between plan and apply: apply sees it under the locks.
TEST_F(RefusalsTest, AVfThatIsTakenMeanwhile) {
  TwoVfs();
  const provision::Provision provision = Of(R"({"vfs": 4})");
  ASSERT_FALSE(PlanVfs(root_, kernel_, provision)->Refused());
  Attach(vfs_[0], "train-1");
  const auto outcome = ApplyVfs(root_, kernel_, control_, provision, "rail0");
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->Failed());
  EXPECT_EQ(VfsOf(kPf0), vfs_);
}

TEST_F(RefusalsTest, TheDevicesAreLockedWhileTheyAreMade) {
  TwoVfs();
  bool tried = false;
  control_.before = [&](const std::string& call) {
    if (call.rfind("Probe", 0) != 0) return;
    tried = true;
    for (const std::string& device : {std::string(kPf0), VfsOf(kPf0)[3], vfs_[0]}) {
      const auto lock = attachment::DeviceLocks::Acquire(root_, {device}, std::chrono::milliseconds(0));
      EXPECT_FALSE(lock) << device;
    }
  };
  Accepted(R"({"vfs": 4})");
  EXPECT_TRUE(tried);
  EXPECT_TRUE(attachment::DeviceLocks::Acquire(root_, {kPf0, vfs_[0]}, std::chrono::milliseconds(0)));
}

TEST_F(RefusalsTest, JsonSaysTheSame) {
  TwoVfs();
  Attach(vfs_[1], "train-0");
  const auto plan = nlohmann::json::parse(record::Dump(ToJson(Plan(R"({"vfs": 4, "mac": "derived"})"))));
  EXPECT_EQ(plan["nothingToDo"], false);
  EXPECT_EQ(plan["refused"], true);
  const auto& pf = plan["pfs"][0];
  EXPECT_EQ(pf["rail"], "rail0");
  EXPECT_EQ(pf["pf"], kPf0);
  EXPECT_EQ(pf["name"], "pf0");
  EXPECT_EQ(pf["vfs"], (nlohmann::json{{"actual", 2}, {"wanted", 4}, {"max", 64}}));
  EXPECT_EQ(pf["refused"]["code"], "busy");
  EXPECT_EQ(pf["steps"][0], "remove its 2 VFs");
  EXPECT_EQ(pf["changedVfs"].size(), 4U);
  EXPECT_EQ(plan["pfs"][1]["refused"], nullptr);
}

// Without permission a process's open files are hidden. Then provisioning does not touch a VF that a process
// may drive.

// This thread opens files as nobody, without root's rights over them (setfsuid(2)), like railheadd without
// CAP_DAC_READ_SEARCH. Users other than root need no change.
class AsNobody {
 public:
  AsNobody() {
    (void)::setfsgid(kNobody);
    (void)::setfsuid(kNobody);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    (void)::setfsuid(::geteuid());
    (void)::setfsgid(::getegid());
  }

 private:
  static constexpr uid_t kNobody = 65534;
};

class HiddenUsesTest : public ProvisionFixture {
 protected:
  void SetUp() override {
    ProvisionFixture::SetUp();
    ASSERT_FALSE(Apply0(R"({"vfs": 2})").error);
    fs::create_directories(fd_);
    fs::create_symlink("/dev/null", fd_ / "3");
    OpenToAll(sysfs_.directory());
    for (const auto& entry : fs::recursive_directory_iterator(sysfs_.directory())) {
      if (!entry.is_symlink()) OpenToAll(entry.path());
    }
  }
  // Lets the removal of the tree read it.
  void TearDown() override { fs::permissions(fd_, fs::perms::all); }

  static void OpenToAll(const fs::path& path) {
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_all | fs::perms::others_all);
  }
  void DrivenBy(const std::string& driver) {
    for (const std::string& vf : VfsOf(kPf0)) control_.BindTo(vf, driver);
  }
  // Why rail0's VFs may not be changed; "": they may.
  std::string WhyNot() {
    const AsNobody nobody;
    const auto plan = PlanVfs(root_, kernel_, Of(R"({"vfs": 4})"), "rail0");
    EXPECT_TRUE(plan) << Describe(plan.error());
    if (!plan || !plan->pfs.at(0).refused) return "";
    EXPECT_EQ(plan->pfs[0].refused->code, ErrorCode::kBusy);
    return Describe(*plan->pfs[0].refused);
  }

  const fs::path fd_ = sysfs_.directory() + "/proc/4711/fd";
};

TEST_F(HiddenUsesTest, AProcessWhoseDescriptorsAreHidden) {
  DrivenBy("vfio-pci");
  ASSERT_EQ(WhyNot(), "") << "nothing is hidden yet";
  fs::permissions(fd_, fs::perms::none);
  const std::string why = WhyNot();
  for (const char* word : {"VF 0", "vfio-pci", "process 4711", "CAP_DAC_READ_SEARCH"}) {
    EXPECT_NE(why.find(word), std::string::npos) << word << ": " << why;
  }
}

// The kernel checks again for each link (proc_pid_readlink).
TEST_F(HiddenUsesTest, AProcessWhoseDescriptorsAreCountedAndNotShown) {
  DrivenBy("vfio-pci");
  fs::permissions(fd_, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  EXPECT_NE(WhyNot().find("process 4711 does not show"), std::string::npos) << WhyNot();
}

// Kernel drivers do not wait for processes that have them open.
TEST_F(HiddenUsesTest, HiddenProcessesAreNoTroubleWithAKernelDriver) {
  fs::permissions(fd_, fs::perms::none);
  EXPECT_EQ(WhyNot(), "");
}

}  // namespace
}  // namespace railhead::testing
