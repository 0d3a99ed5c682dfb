// What processes have open is not shown to everybody: then a VF that one may drive is not touched.
#include <sys/fsuid.h>

#include <filesystem>

#include "deviceplugin/services/provision/report.h"
#include "tests/unit/deviceplugin/services/provision/fixture.h"

namespace railhead::testing {
namespace {

namespace fs = std::filesystem;

// This thread opens files as nobody, without root's rights over them (setfsuid(2)), as railheadd
// without CAP_DAC_READ_SEARCH does. Of another user than root nothing is changed, and needs to be.
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
  // Whoever removes the tree may look into it.
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

// proc_pid_readlink asks again for each.
TEST_F(HiddenUsesTest, AProcessWhoseDescriptorsAreCountedAndNotShown) {
  DrivenBy("vfio-pci");
  fs::permissions(fd_, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  EXPECT_NE(WhyNot().find("process 4711 does not show"), std::string::npos) << WhyNot();
}

// Kernel drivers do not wait for whoever has them open.
TEST_F(HiddenUsesTest, HiddenProcessesAreNoTroubleWithAKernelDriver) {
  fs::permissions(fd_, fs::perms::none);
  EXPECT_EQ(WhyNot(), "");
}

}  // namespace
}  // namespace railhead::testing
