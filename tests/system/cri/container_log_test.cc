#include "tests/system/cri/container_log.h"

#include <gtest/gtest.h>

namespace railhead::testing {
namespace {

constexpr const char* kTime = "2026-11-21T08:09:25.826196850Z";

std::string Entry(const std::string& stream, const std::string& tags, const std::string& text) {
  return std::string(kTime) + " " + stream + " " + tags + " " + text + "\n";
}

TEST(ContainerLogTest, StreamsAreSeparated) {
  const auto output = ParseContainerLog(Entry("stdout", "F", "one") + Entry("stderr", "F", "two  words") +
                                        Entry("stdout", "F", "") + Entry("stdout", "F", "three"));
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(output->out, "one\n\nthree\n");
  EXPECT_EQ(output->err, "two  words\n");
}

TEST(ContainerLogTest, PartsOfALineAreJoinedByStream) {
  const auto output = ParseContainerLog(Entry("stdout", "P", "long ") + Entry("stderr", "P", "other ") +
                                        Entry("stdout", "F:more", "line") + Entry("stderr", "F", "one"));
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(output->out, "long line\n");
  EXPECT_EQ(output->err, "other one\n");
}

TEST(ContainerLogTest, ALineStillBeingWrittenIsLeftOut) {
  const auto output = ParseContainerLog(Entry("stdout", "F", "done") + std::string(kTime) + " std");
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(output->out, "done\n");
  EXPECT_EQ(ParseContainerLog("")->out, "");
}

TEST(ContainerLogTest, WhatIsNoEntryIsNamed) {
  for (const std::string& bad :
       {std::string("no entry\n"), Entry("stdin", "F", "x"), Entry("stdout", "X", "x"),
        std::string(" stdout F x\n"), std::string("\n")}) {
    const auto output = ParseContainerLog(Entry("stdout", "F", "fine") + bad);
    ASSERT_FALSE(output) << bad;
    EXPECT_EQ(output.error().code, ErrorCode::kMalformed);
    EXPECT_NE(output.error().message.find("line 2"), std::string::npos) << output.error().message;
  }
}

}  // namespace
}  // namespace railhead::testing
