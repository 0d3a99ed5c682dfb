#include "deviceplugin/tools/install/install.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "deviceplugin/tools/install/version.h"
#include "netns/base/files.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

std::string Program(const std::string& name, const std::string& version, const std::string& more = "") {
  return "#!/bin/sh\n" + more + "echo " + name + " " + version + "\n";
}

// The beginning of a program for a 64-bit ARM machine, which does not run on others.
std::string ArmProgram() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_AARCH64;
  header.e_version = EV_CURRENT;
  std::string content(sizeof header, '\0');
  std::memcpy(content.data(), &header, sizeof header);
  return content;
}

class InstallProgramsTest : public ::testing::Test {
 protected:
  InstallProgramsTest() {
    EXPECT_TRUE(MakeDirectories(order_.from));
    EXPECT_TRUE(MakeDirectories(order_.to));
    Give(order_.from, "1.2.0");
  }
  static void Write(const std::string& path, const std::string& content, mode_t mode = 0755) {
    ASSERT_TRUE(WriteAtomic(path, content, Sync::kVolatile, mode));
  }
  static void Give(const std::string& directory, const std::string& version, const std::string& more = "") {
    for (const char* name : {"railhead", "railhead-ipam"})
      Write(directory + "/" + name, Program(name, version, more));
  }
  // Name -> content of what is there.
  [[nodiscard]] std::map<std::string, std::string> There() const {
    std::map<std::string, std::string> there;
    const auto names = ListDirectory(order_.to).value();
    for (const std::string& name : *names) there[name] = ReadFile(order_.to + "/" + name).value().value();
    return there;
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }
  static ino_t InodeOf(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  }
  [[nodiscard]] std::string Host(const std::string& name) const { return order_.to + "/" + name; }
  void ExpectAll(install::InstallOutcome outcome, const std::optional<std::string>& previous) {
    const auto programs = InstallPrograms(order_);
    ASSERT_TRUE(programs) << Describe(programs.error());
    ASSERT_EQ(programs->size(), 2U);
    for (const auto& program : *programs) {
      EXPECT_EQ(program.outcome, outcome) << program.name;
      EXPECT_EQ(program.previous, previous) << program.name;
    }
  }
  // Nothing has changed, and why.
  void ExpectRefused(ErrorCode code, const std::string& word) {
    const auto before = There();
    const auto programs = InstallPrograms(order_);
    ASSERT_FALSE(programs);
    EXPECT_EQ(programs.error().code, code) << Describe(programs.error());
    EXPECT_NE(Describe(programs.error()).find(word), std::string::npos) << Describe(programs.error());
    EXPECT_EQ(There(), before);
  }

  TempRoot root_;
  install::ProgramOrder order_{root_.directory() + "/image", root_.directory() + "/host"};
};

TEST_F(InstallProgramsTest, WhereThereAreNone) {
  Write(Host("bridge"), "another's");
  ExpectAll(install::InstallOutcome::kInstalled, std::nullopt);
  const std::map<std::string, std::string> expected = {{"bridge", "another's"},
                                                       {"railhead", Program("railhead", "1.2.0")},
                                                       {"railhead-ipam", Program("railhead-ipam", "1.2.0")}};
  EXPECT_EQ(There(), expected);
  EXPECT_EQ(ModeOf(Host("railhead")), 0755U);
}

TEST_F(InstallProgramsTest, OlderOnesAreReplaced) {
  Give(order_.to, "1.1.9");
  ExpectAll(install::InstallOutcome::kReplaced, "1.1.9");
  EXPECT_EQ(There()["railhead"], Program("railhead", "1.2.0"));
}

// A rebuilt program can have the same version.
TEST_F(InstallProgramsTest, OfOneVersionTheContentCounts) {
  Give(order_.to, "1.2.0", "# rebuilt\n");
  ExpectAll(install::InstallOutcome::kReplaced, "1.2.0");
}

TEST_F(InstallProgramsTest, TheSameStay) {
  ExpectAll(install::InstallOutcome::kInstalled, std::nullopt);
  const ino_t before = InodeOf(Host("railhead"));
  ExpectAll(install::InstallOutcome::kUnchanged, "1.2.0");
  EXPECT_EQ(InodeOf(Host("railhead")), before);
}

TEST_F(InstallProgramsTest, TheSameButNotExecutable) {
  for (const char* name : {"railhead", "railhead-ipam"}) Write(Host(name), Program(name, "1.2.0"), 0644);
  ExpectAll(install::InstallOutcome::kReplaced, std::nullopt);
  EXPECT_EQ(ModeOf(Host("railhead-ipam")), 0755U);
}

TEST_F(InstallProgramsTest, AnImageForAnotherMachine) {
  Give(order_.to, "1.1.0");
  Write(order_.from + "/railhead-ipam", ArmProgram());
  ExpectRefused(ErrorCode::kInvalid, "is a program for aarch64, and this node is x86_64");
}

TEST_F(InstallProgramsTest, ProgramsOfAnotherMachineAreReplaced) {
  for (const char* name : {"railhead", "railhead-ipam"}) Write(Host(name), ArmProgram());
  const auto programs = InstallPrograms(order_);
  ASSERT_TRUE(programs) << Describe(programs.error());
  for (const auto& program : *programs) {
    EXPECT_EQ(program.outcome, install::InstallOutcome::kReplaced);
    EXPECT_EQ(program.warning,
              Host(program.name) + " is a program for aarch64, and this node is x86_64; it is replaced");
  }
  EXPECT_EQ(There()["railhead"], Program("railhead", "1.2.0"));
}

TEST_F(InstallProgramsTest, DamagedOnesAreReplaced) {
  for (const char* name : {"railhead", "railhead-ipam"})
    Write(Host(name),
          "\x7f"
          "ELF");
  ExpectAll(install::InstallOutcome::kReplaced, std::nullopt);
}

TEST_F(InstallProgramsTest, NewerOnesStay) {
  Give(order_.to, "1.10.0");
  ExpectRefused(ErrorCode::kConflict, "1.10.0");
  order_.allow_downgrade = true;
  ExpectAll(install::InstallOutcome::kReplaced, "1.10.0");
}

TEST_F(InstallProgramsTest, BothOrNone) {
  Write(Host("railhead"), Program("railhead", "1.1.0"));
  Write(Host("railhead-ipam"), Program("railhead-ipam", "1.3.0"));
  ExpectRefused(ErrorCode::kConflict, "railhead-ipam is version 1.3.0");
}

TEST_F(InstallProgramsTest, WhatDoesNotRunIsNotInstalled) {
  Give(order_.to, "1.1.0");
  Write(order_.from + "/railhead-ipam",
        "\x7f"
        "ELF, cut short");
  ExpectRefused(ErrorCode::kInvalid, "does not tell its version");
  ASSERT_TRUE(RemoveFile(order_.from + "/railhead-ipam"));
  ExpectRefused(ErrorCode::kNotFound, "no such file");
  order_.to += "/nowhere";
  const auto programs = InstallPrograms(order_);
  ASSERT_FALSE(programs);
  EXPECT_EQ(programs.error().code, ErrorCode::kNotFound);
}

// A killed installer does not remove its temporary file. The file must not hinder the next installer, nor
// stay for ever.
TEST_F(InstallProgramsTest, HalvesOfAKilledInstallerGo) {
  for (int round = 0; round < 2; ++round) {
    Write(Host("railhead.new"), "half");
    const auto programs = InstallPrograms(order_);
    ASSERT_TRUE(programs) << Describe(programs.error());
    EXPECT_EQ(There().size(), 2U);
  }
}

// A failed write changes nothing: the second of two files cannot be written, since a directory has its
// temporary name.
TEST_F(InstallProgramsTest, AFailureLeavesWhatWas) {
  Give(order_.to, "1.1.0");
  ASSERT_TRUE(MakeDirectories(Host("railhead-ipam.new")));
  const auto programs = InstallPrograms(order_);
  ASSERT_FALSE(programs);
  EXPECT_EQ(ReadFile(Host("railhead")).value(), Program("railhead", "1.1.0"));
  EXPECT_EQ(ReadFile(Host("railhead.new")).value(), std::nullopt);
}

// A reader always finds a complete program, and an installation does not disturb a running program.
TEST_F(InstallProgramsTest, ThereIsAlwaysOne) {
  Give(order_.to, "1.0.0");
  order_.allow_downgrade = true;
  const install::ProgramOrder other{root_.directory() + "/other", order_.to, order_.names, true};
  ASSERT_TRUE(MakeDirectories(other.from));
  Give(other.from, "1.1.0");
  std::atomic<bool> stop = false;
  std::thread installer([&] {
    while (!stop) {
      EXPECT_TRUE(InstallPrograms(order_));
      EXPECT_TRUE(InstallPrograms(other));
    }
  });
  for (int i = 0; i < 100; ++i) {
    const auto content = ReadFile(Host("railhead")).value();
    EXPECT_TRUE(content && content->ends_with("\n")) << content.value_or("nothing");
  }
  stop = true;
  installer.join();
}

// Two installers run at a time. The one with the older version comes second and finds the result of the
// first.
TEST_F(InstallProgramsTest, OneAfterTheOther) {
  const install::ProgramOrder newer{root_.directory() + "/newer", order_.to};
  ASSERT_TRUE(MakeDirectories(newer.from));
  Give(newer.from, "1.3.0");
  auto directory = install::InstallDirectory::Open(order_.to);
  ASSERT_TRUE(directory);
  std::optional<Result<std::vector<install::InstalledProgram>>> older;
  std::thread waiting([&] { older = InstallPrograms(order_); });
  ASSERT_TRUE(directory->Put({{"railhead", Program("railhead", "1.3.0")}}, 0755));
  directory = Fail(ErrorCode::kInternal, "let go");
  waiting.join();
  ASSERT_TRUE(older.has_value());
  ASSERT_FALSE(*older);
  EXPECT_EQ(older->error().code, ErrorCode::kConflict);
}

TEST_F(InstallProgramsTest, TheWaitForAnotherInstallerEnds) {
  const auto first = install::InstallDirectory::Open(order_.to);
  ASSERT_TRUE(first);
  const auto second = install::InstallDirectory::Open(order_.to, std::chrono::milliseconds(20));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
  EXPECT_NE(second.error().message.find(order_.to), std::string::npos) << second.error().message;
}

constexpr std::chrono::seconds kLong{60};

// semver.org, section 11, and what lies around it.
TEST(VersionTest, Order) {
  const std::vector<std::string> rising = {
      "0.1.0-rc.1",       "0.1.0",      "0.2.0",        "0.10.0",        "1.0.0-alpha", "1.0.0-alpha.1",
      "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",  "1.0.0"};
  for (std::size_t i = 0; i < rising.size(); ++i) {
    for (std::size_t j = 0; j < rising.size(); ++j) {
      EXPECT_EQ(*install::ParseVersion(rising[i]) <=> *install::ParseVersion(rising[j]),
                std::weak_ordering(i <=> j))
          << rising[i] << " " << rising[j];
    }
  }
  EXPECT_TRUE(*install::ParseVersion("1.0.0+a") == *install::ParseVersion("1.0.0+b"));
}

TEST(VersionTest, WhatIsNone) {
  for (const char* text :
       {"", "1", "1.2", "1.2.3.4", "1.2.x", "1.-2.3", "v1.2.3", "1.2.3-", "1.2.3-a..b", "1.2.3-a b"}) {
    EXPECT_EQ(install::ParseVersion(text), std::nullopt) << text;
  }
}

class AskVersionTest : public ::testing::Test {
 protected:
  // What a program with this shell script says that its version is.
  std::optional<std::string> Ask(const std::string& script, std::chrono::milliseconds limit = kLong) {
    const std::string path = root_.directory() + "/program";
    EXPECT_TRUE(WriteAtomic(path, script, Sync::kVolatile, 0755));
    return install::AskVersion(path, "program", limit);
  }
  TempRoot root_;
};

TEST_F(AskVersionTest, ProgramsOfRailheadSay) {
  EXPECT_EQ(Ask("#!/bin/sh\n[ \"$*\" = --version ] && echo program 1.2.3-rc.1"), "1.2.3-rc.1");
}

TEST_F(AskVersionTest, OthersDoNot) {
  EXPECT_EQ(Ask("#!/bin/sh\necho other 1.2.3"), std::nullopt);
  EXPECT_EQ(Ask("#!/bin/sh\necho program"), std::nullopt);
  EXPECT_EQ(Ask("#!/bin/sh\necho program one"), std::nullopt);
  EXPECT_EQ(Ask("#!/bin/sh\necho program 1.2.3 or so"), std::nullopt);
  EXPECT_EQ(Ask("#!/bin/sh\necho program 1.2.3; exit 1"), std::nullopt);
  EXPECT_EQ(Ask("#!/bin/sh\nkill -9 $$"), std::nullopt);
  EXPECT_EQ(Ask("\x7f"
                "ELF, cut short"),
            std::nullopt);
  EXPECT_EQ(Ask(""), std::nullopt);
  EXPECT_EQ(install::AskVersion(root_.directory() + "/nothing", "program", kLong), std::nullopt);
  EXPECT_EQ(install::AskVersion(root_.directory(), "program", kLong), std::nullopt);
}

TEST_F(AskVersionTest, WhatDoesNotEndIsKilled) {
  EXPECT_EQ(Ask("#!/bin/sh\necho program 1.2.3; exec >/dev/null; while :; do :; done",
                std::chrono::milliseconds(200)),
            std::nullopt);
  // Nobody reads: it would wait for ever with its output full.
  EXPECT_EQ(Ask("#!/bin/sh\nwhile :; do echo program 1.2.3; done", std::chrono::milliseconds(200)),
            std::nullopt);
}

}  // namespace
}  // namespace railhead::testing
