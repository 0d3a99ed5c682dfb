#include "deviceplugin/support/program/program.h"

#include <gtest/gtest.h>

#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr std::chrono::seconds kLong{60};
constexpr std::chrono::milliseconds kShort{200};

class ProgramTest : public ::testing::Test {
 protected:
  // What a program with this shell script answers.
  std::optional<std::string> Ask(const std::string& script, std::chrono::milliseconds limit = kLong,
                                 const std::vector<std::string>& arguments = {}) {
    root_.Write("/program", "#!/bin/sh\n" + script, true);
    return AskProgram({root_.directory() + "/program", arguments, {"ANSWER=42"}, limit});
  }
  const TempRoot root_;
};

TEST_F(ProgramTest, ItsOutputIsTheAnswer) {
  EXPECT_EQ(Ask("echo \"$# $1\"; echo \"$ANSWER\"; cat; echo error >&2", kLong, {"a b; c"}),
            "1 a b; c\n42\n");
  EXPECT_EQ(Ask("exit 0"), "");
}

TEST_F(ProgramTest, OfALongOneTheBeginning) {
  EXPECT_EQ(Ask("i=0; while [ $i -lt 100 ]; do echo 123456789; i=$((i + 1)); done")->size(), 256U);
}

TEST_F(ProgramTest, AProgramThatFailsHasNoAnswer) {
  EXPECT_EQ(Ask("echo x; exit 1"), std::nullopt);
  EXPECT_EQ(Ask("echo x; kill -9 $$"), std::nullopt);
  EXPECT_EQ(AskProgram({root_.directory() + "/absent", {}, {}, kLong}), std::nullopt);
  EXPECT_EQ(AskProgram({root_.directory(), {}, {}, kLong}), std::nullopt);
}

TEST_F(ProgramTest, AnEndlessProgramIsKilled) {
  EXPECT_EQ(Ask("echo x; exec >/dev/null; while :; do :; done", kShort), std::nullopt);
  // Nobody reads: it would wait for ever with its output full.
  EXPECT_EQ(Ask("while :; do echo x; done", kShort), std::nullopt);
}

}  // namespace
}  // namespace railhead::testing
