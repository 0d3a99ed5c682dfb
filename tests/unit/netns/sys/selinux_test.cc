// The labels of files that containers mount, on a file system that has labels.
#include "netns/sys/selinux.h"

#include <gtest/gtest.h>
#include <sys/xattr.h>

#include <cstring>

#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kFile = "/run/railhead/nccl/c1/nccl.conf";

class SelinuxTest : public ::testing::Test {
 protected:
  SelinuxTest() { temp_.Write(kFile, "A=1\n"); }

  void SetUp() override {
    // As a kernel without SELinux, too, demands (cap_inode_setxattr in security/commoncap.c).
    if (!Set("x:y:z:s0")) GTEST_SKIP() << "needs root, and a file system with labels";
    ASSERT_EQ(::removexattr(Path().c_str(), "security.selinux"), 0);
  }
  [[nodiscard]] std::string Path() const { return temp_.directory() + kFile; }
  [[nodiscard]] bool Set(const std::string& label) const {
    return ::setxattr(Path().c_str(), "security.selinux", label.c_str(), label.size() + 1, 0) == 0;
  }
  [[nodiscard]] std::string Label() const {
    std::string text(512, '\0');
    const ssize_t size = ::getxattr(Path().c_str(), "security.selinux", text.data(), text.size());
    return size <= 0 ? "" : std::string(text.c_str());
  }

  const TempRoot temp_;
};

TEST_F(SelinuxTest, WithoutSelinuxNothingChanges) {
  EXPECT_FALSE(HasSelinux(temp_.root()));
  EXPECT_TRUE(LabelForContainers(temp_.root(), Path()));
  EXPECT_EQ(Label(), "");
  ASSERT_TRUE(Set("system_u:object_r:var_run_t:s0"));
  EXPECT_EQ(LabelAgainstContainers(temp_.root(), Path()), "");
}

TEST_F(SelinuxTest, ContainersMayReadTheFile) {
  temp_.Write("/sys/fs/selinux/enforce", "1");
  for (const char* before : {"", "system_u:object_r:var_run_t:s0", "system_u:object_r:container_var_run_t:s0",
                             "unconfined_u:object_r:user_tmp_t:s0:c1,c2"}) {
    if (std::strlen(before) > 0) {
      ASSERT_TRUE(Set(before));
      EXPECT_EQ(LabelAgainstContainers(temp_.root(), Path()), before);
    }
    ASSERT_TRUE(LabelForContainers(temp_.root(), Path()));
    EXPECT_EQ(Label(), kContainerFileLabel) << before;
    EXPECT_EQ(LabelAgainstContainers(temp_.root(), Path()), "");
  }
  // An administrator's stays.
  const std::string own = "unconfined_u:object_r:container_file_t:s0";
  ASSERT_TRUE(Set(own));
  ASSERT_TRUE(LabelForContainers(temp_.root(), Path()));
  EXPECT_EQ(Label(), own);
}

TEST_F(SelinuxTest, AFileThatIsGoneIsAnError) {
  temp_.Write("/sys/fs/selinux/enforce", "1");
  const auto labelled = LabelForContainers(temp_.root(), Path() + ".gone");
  ASSERT_FALSE(labelled);
  EXPECT_EQ(labelled.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(LabelAgainstContainers(temp_.root(), Path() + ".gone"), "");
}

}  // namespace
}  // namespace railhead::testing
