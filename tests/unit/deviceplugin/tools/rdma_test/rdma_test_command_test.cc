// `railctl rdma-test` as a process, as far as it goes without RDMA.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

class RdmaTestCommandTest : public ::testing::Test {
 protected:
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {RAILCTL, "rdma-test"});
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  }
  TempRoot temp_;
};

TEST_F(RdmaTestCommandTest, AFailedTestIsStatusOne) {
  const auto output = Run({"host@no_such_0", "host@no_such_1", "-o", "json"});
  EXPECT_EQ(output.status, 1) << output.err;
  const auto json = nlohmann::json::parse(output.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << output.out;
  EXPECT_EQ(json["tests"][0]["from"], "host@no_such_0");
  // The error depends on this machine: it has verbs but not this device, or lacks verbs.
  EXPECT_TRUE(json["tests"][0]["error"]["message"].is_string()) << output.out;
  EXPECT_NE(output.err.find("host@no_such_0: "), std::string::npos) << output.err;
}

TEST_F(RdmaTestCommandTest, WrongCommandLines) {
  EXPECT_EQ(Run({}).status, 2);
  EXPECT_EQ(Run({"host", "host@a", "--size", "7"}).status, 2);
  EXPECT_EQ(Run({"host", "host@a", "--timeout", "0"}).status, 2);
  EXPECT_EQ(Run({"host", "host@a", "--gid-index", "256"}).status, 2);
  EXPECT_EQ(Run({"host", "host@a", "--listen", "127.0.0.1:7471"}).status, 2) << "two ends";
  EXPECT_EQ(Run({"host", "--listen", "localhost:7471"}).status, 2) << "a name";
}

TEST_F(RdmaTestCommandTest, EndsThatAreNone) {
  const auto unknown = Run({"host", "some-pod"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("nothing on this node is called 'some-pod'"), std::string::npos) << unknown.err;
  const auto path = Run({"host", temp_.directory() + "/netns"});
  EXPECT_EQ(path.status, 1);
  EXPECT_NE(path.err.find("opening network namespace"), std::string::npos) << path.err;
}

TEST_F(RdmaTestCommandTest, BothWaysAreTwoTestsOfTheRail) {
  const auto output =
      Run({"host@no_such_0", "host@no_such_1", "--rail", "rail3", "--both-ways", "-o", "json"});
  EXPECT_EQ(output.status, 1) << output.err;
  const auto tests = nlohmann::json::parse(output.out, nullptr, false)["tests"];
  ASSERT_EQ(tests.size(), 2U) << output.out;
  EXPECT_EQ(tests[0]["to"], tests[1]["from"]);
  EXPECT_EQ(tests[0]["from"], tests[1]["to"]);
  EXPECT_EQ(tests[1]["rail"], "rail3");
}

TEST_F(RdmaTestCommandTest, AKeyFileWithoutAKeyEndsIt) {
  const std::string keys = temp_.directory() + "/keys";
  const auto missing = Run({"host", "--listen", "127.0.0.1:0", "--wait", "1", "--key-file", keys});
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("no such key file: " + keys), std::string::npos) << missing.err;
  temp_.Write("/keys", "x\n");
  const auto wrong = Run({"host", "--listen", "127.0.0.1:0", "--wait", "1", "--key-file", keys});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("line 1 is not a key"), std::string::npos) << wrong.err;
}

TEST_F(RdmaTestCommandTest, ListeningEndsByItself) {
  const auto output = Run({"host", "--listen", "127.0.0.1:0", "--wait", "1"});
  EXPECT_EQ(output.status, 1) << "no test, no proof";
  EXPECT_EQ(output.out, "no test came\n") << output.err;
}

}  // namespace
}  // namespace railhead::testing
