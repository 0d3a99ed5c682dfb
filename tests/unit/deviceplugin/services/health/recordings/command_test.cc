// `railctl health replay` as a process, over every incident beside this file.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

std::string Incident(const std::string& name) {
  return std::string(INCIDENTS) + "/" + name + ".jsonl";
}

class ReplayCommandTest : public ::testing::Test {
 protected:
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  }
  TempRoot temp_;
};

TEST_F(ReplayCommandTest, EveryIncident) {
  int incidents = 0;
  for (const auto& entry : std::filesystem::directory_iterator(INCIDENTS)) {
    if (entry.path().extension() != ".jsonl") continue;
    ++incidents;
    const auto output = Run({"health", "replay", entry.path().string()});
    EXPECT_EQ(output.status, 0) << output.err;
    auto expected = entry.path();
    EXPECT_EQ(output.out, ReadFileAt(expected.replace_extension(".timeline").string())) << entry.path();
  }
  EXPECT_GE(incidents, 10);
}

TEST_F(ReplayCommandTest, QuieterRules) {
  const auto output = Run({"health", "replay", Incident("flap-long"), "--health",
                           R"({"link":{"downAfter":30},"rdmaPort":{"downAfter":30},"errorRate":false})"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_NE(output.out.find("no device was Unhealthy\n"), std::string::npos) << output.out;
}

TEST_F(ReplayCommandTest, EarlierRulesOfAFabric) {
  temp_.Write(
      "/fabric.json",
      R"({"version":1,"rails":[],"health":{"errorRate":{"counters":{"symbol_error":{"limit":60}}}}})");
  const auto first_ms = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"health", "replay", Incident("symbol-errors"), "-o", "json"});
    const auto output = Run(arguments);
    const auto json = nlohmann::json::parse(output.out, nullptr, false);
    EXPECT_TRUE(json.contains("changes")) << output.out << output.err;
    return json["changes"].at(0)["afterMs"].get<int>();
  };
  EXPECT_LT(first_ms({"--health", temp_.directory() + "/fabric.json"}), first_ms({}));
}

TEST_F(ReplayCommandTest, ThisNodesOwn) {
  EXPECT_EQ(Run({"health", "replay"}).status, 1);
  const auto none = Run({"health", "--recording"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("observations.jsonl"), std::string::npos);
  const std::string text = ReadFileAt(Incident("cable-cut"));
  temp_.Write("/run/railhead/observations.jsonl", text + "{\"t\":half");
  EXPECT_EQ(Run({"health", "--recording"}).out, text);
  EXPECT_EQ(Run({"health", "replay"}).out, ReadFileAt(std::string(INCIDENTS) + "/cable-cut.timeline"));
}

TEST_F(ReplayCommandTest, WhatCannotBeRead) {
  temp_.Write("/wrong.jsonl", "{\"version\":1,\"time\":\"2027-01-15T08:00:00Z\"}\n{\"t\":true}\n");
  const auto wrong = Run({"health", "replay", temp_.directory() + "/wrong.jsonl"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("wrong.jsonl line 2: /t: is not an integer"), std::string::npos) << wrong.err;
  EXPECT_EQ(Run({"health", "replay", temp_.directory() + "/none.jsonl"}).status, 1);
  EXPECT_EQ(Run({"health", "replay", Incident("cable-cut"), "--health", "{\"lnk\":1}"}).status, 3);
  EXPECT_EQ(
      Run({"health", "replay", Incident("cable-cut"), "--health", temp_.directory() + "/none.json"}).status,
      3);
  EXPECT_EQ(Run({"health", "--recording", "-o", "json"}).status, 2);
}

}  // namespace
}  // namespace railhead::testing
