// The node's limits: nothing that the soak waits for ends without a word.
#include "tests/system/soak/node.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/temp_root.h"
#include "tests/system/soak/processes.h"

namespace railhead::soak {
namespace {

using std::chrono::milliseconds;

TEST(NodeTest, ALateCallIsKilledAndNamedWithItsProcesses) {
  const testing::TempRoot root;
  root.Write("/bin/late", "#!/bin/sh\nexec sleep 1000\n", true);
  NodeSetting setting;
  setting.plugin.directory = root.directory() + "/bin";
  setting.plugin.type = "late";
  setting.call_limit = milliseconds(200);
  Slot slot;
  slot.pod.id = "soak-1";
  slot.config = "{}";
  ::testing::internal::CaptureStderr();
  Node node(setting);
  const Answer answer = node.Call("ADD", slot);
  const std::string shown = ::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(answer.succeeded);
  ASSERT_FALSE(node.wrong().empty());
  EXPECT_EQ(node.wrong().front(), "ADD of soak-1 does not end within 200 ms");
  EXPECT_NE(shown.find("WRONG: ADD of soak-1 does not end"), std::string::npos) << shown;
  const std::string child = ", parent " + std::to_string(::getpid()) + "\n  thread ";
  EXPECT_NE(shown.find(child), std::string::npos) << shown;
}

// Waits for ever, with a child that does so, too.
void TakeTooLong() {
  NodeSetting setting;
  setting.step_limit = milliseconds(200);
  Node node(setting);
  const Node::Step step(node, "a wave with nothing");
  (void)Shell("exec sleep 1000");
}

TEST(NodeDeathTest, ALateStepEndsTheProgramAndNamesItsProcesses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(TakeTooLong(), ::testing::ExitedWithCode(1),
              "WRONG: a wave with nothing does not end(.|\n)*process [0-9]+, parent [0-9]+\n  thread ");
}

}  // namespace
}  // namespace railhead::soak
