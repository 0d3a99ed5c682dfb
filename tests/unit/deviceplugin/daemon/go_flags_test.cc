// The arguments of sriov-network-device-plugin as railheadd's.
#include "deviceplugin/daemon/go_flags.h"

#include <gtest/gtest.h>

namespace railhead::testing {
namespace {

using Strings = std::vector<std::string>;

// Arguments that DaemonSets of sriov-network-device-plugin pass.

Strings Ours(const Strings& theirs) {
  return daemon::TranslateGoFlags(theirs).arguments;
}

TEST(GoFlags, OneDashIsTwo) {
  EXPECT_EQ(Ours({"-config-file=/a/config.json", "-resource-prefix", "example.com"}),
            (Strings{"--config-file=/a/config.json", "--resource-prefix=example.com"}));
  EXPECT_EQ(Ours({"--config-file", "/a"}), Strings{"--config-file=/a"});
}

TEST(GoFlags, TheDaemonSetOfItsRepositoryStarts) {
  const auto foreign = daemon::TranslateGoFlags({"--log-dir=sriovdp", "--log-level=10"});
  EXPECT_EQ(foreign.arguments, Strings{"--log-level=debug"});
  EXPECT_EQ(foreign.dropped, Strings{"--log-dir=sriovdp"});
}

TEST(GoFlags, WhatItsEntryPointPassesOn) {
  const auto foreign =
      daemon::TranslateGoFlags({"-v", "3", "--log_dir", "/var/log/x", "--alsologtostderr", "--use-cdi"});
  EXPECT_EQ(foreign.arguments, (Strings{"--log-level=info", "--use-cdi"}));
  EXPECT_EQ(foreign.dropped, (Strings{"--log_dir /var/log/x", "--alsologtostderr"}));
}

TEST(GoFlags, ABooleansValueIsBehindItsEqualsSignOnly) {
  EXPECT_EQ(Ours({"-use-cdi=false"}), Strings{"--use-cdi=false"});
  EXPECT_EQ(Ours({"-use-cdi=T"}), Strings{"--use-cdi"});
  EXPECT_EQ(Ours({"-logtostderr", "--list"}), Strings{"--list"});
}

TEST(GoFlags, OursStayAsTheyAre) {
  const Strings ours{"--fabric", "/etc/railhead/fabric.json", "--log-level",
                     "warning",  "--resync-interval=5",       "x"};
  const auto foreign = daemon::TranslateGoFlags(ours);
  EXPECT_EQ(foreign.arguments, (Strings{"--fabric", "/etc/railhead/fabric.json", "--log-level=warning",
                                        "--resync-interval=5", "x"}));
  EXPECT_TRUE(foreign.dropped.empty());
  EXPECT_EQ(Ours({"-config-file"}), Strings{"--config-file"})
      << "what lacks its value is refused by the parser";
  EXPECT_EQ(Ours({"-unknown=1"}), Strings{"-unknown=1"});
}

}  // namespace
}  // namespace railhead::testing
