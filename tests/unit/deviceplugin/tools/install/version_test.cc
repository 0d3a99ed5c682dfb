#include <gtest/gtest.h>
#include <sys/stat.h>

#include "deviceplugin/tools/install/install.h"
#include "netns/base/files.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

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
