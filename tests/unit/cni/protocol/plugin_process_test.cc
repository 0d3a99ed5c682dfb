// The protocol of a whole plugin process: command line, environment, standard input
// and output, exit status.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace railhead::testing {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr const char* kConfig = R"({"cniVersion":"0.4.0","name":"n","type":"echo"})";

ProcessOutput Call(const Environment& changes, const std::string& input = kConfig) {
  Environment environment{{"CNI_COMMAND", "ADD"},
                          {"CNI_CONTAINERID", "c1"},
                          {"CNI_NETNS", "/run/netns/x"},
                          {"CNI_IFNAME", "net1"},
                          {"CNI_PATH", "/opt/cni/bin"}};
  for (const auto& [name, value] : changes) environment[name] = value;
  return RunProcess({ECHO_PLUGIN}, environment, input);
}

nlohmann::json Json(const ProcessOutput& output) {
  return nlohmann::json::parse(output.out, nullptr, false);
}

TEST(PluginProcessTest, AnswersVersion) {
  for (const char* input : {"", "{", R"({"cniVersion":"1.0.0"})"}) {
    const auto output = RunProcess({ECHO_PLUGIN}, {{"CNI_COMMAND", "VERSION"}}, input);
    EXPECT_EQ(output.status, 0) << input;
    EXPECT_EQ(Json(output)["supportedVersions"],
              nlohmann::json::parse(R"(["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"])"));
  }
  EXPECT_EQ(Json(RunProcess({ECHO_PLUGIN}, {{"CNI_COMMAND", "VERSION"}}, kConfig))["cniVersion"], "0.4.0");
}

TEST(PluginProcessTest, HandsTheRequestOver) {
  const auto output = Call({});
  EXPECT_EQ(output.status, 0) << output.out;
  EXPECT_EQ(output.out, "ADD n c1 net1 /run/netns/x 0.4.0\n");
  const auto del = Call({{"CNI_COMMAND", "DEL"}, {"CNI_NETNS", ""}});
  EXPECT_EQ(del.status, 0);
  EXPECT_EQ(del.out, "");
}

TEST(PluginProcessTest, PluginErrorsBecomeJson) {
  const auto output = Call({{"CNI_COMMAND", "CHECK"}});
  EXPECT_EQ(output.status, 1);
  const auto json = Json(output);
  EXPECT_EQ(json["cniVersion"], "0.4.0");
  EXPECT_EQ(json["code"], 106);
  EXPECT_EQ(json["msg"], "not as it should be");
  EXPECT_EQ(json["details"], "look");
}

TEST(PluginProcessTest, GcHandsTheListOver) {
  const Environment environment{{"CNI_COMMAND", "GC"}, {"CNI_PATH", "/opt/cni/bin"}};
  const auto output = RunProcess(
      {ECHO_PLUGIN}, environment,
      R"({"cniVersion":"1.1.0","name":"n","cni.dev/valid-attachments":[{"containerID":"c1","ifname":"net1"}]})");
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(Json(output)["msg"], "GC n c1/net1");
  EXPECT_EQ(Json(output)["code"], 51);
  const auto missing = RunProcess({ECHO_PLUGIN}, environment, R"({"cniVersion":"1.1.0","name":"n"})");
  EXPECT_EQ(Json(missing)["code"], 7) << "without the list the plugin is not asked";
}

TEST(PluginProcessTest, StatusIsSilentOrCode50) {
  const Environment environment{{"CNI_COMMAND", "STATUS"}, {"CNI_PATH", "/opt/cni/bin"}};
  const auto sound = RunProcess({ECHO_PLUGIN}, environment, R"({"cniVersion":"1.1.0","name":"sound"})");
  EXPECT_EQ(sound.status, 0) << sound.out;
  EXPECT_EQ(sound.out, "");
  const auto not_now = RunProcess({ECHO_PLUGIN}, environment, R"({"cniVersion":"1.1.0","name":"n"})");
  EXPECT_EQ(not_now.status, 1);
  EXPECT_EQ(Json(not_now)["code"], 50);
  EXPECT_EQ(Json(RunProcess({ECHO_PLUGIN}, environment, kConfig))["code"], 1) << "0.4.0 has no STATUS";
}

TEST(PluginProcessTest, BadEnvironmentIsCode4) {
  const auto output = Call({{"CNI_IFNAME", "a/b"}});
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(Json(output)["code"], 4);
  EXPECT_EQ(Json(RunProcess({ECHO_PLUGIN}, {}, kConfig))["code"], 4);
}

TEST(PluginProcessTest, BadConfigurationsAreCodes6And7) {
  EXPECT_EQ(Json(Call({}, "{"))["code"], 6);
  EXPECT_EQ(Json(Call({}, R"({"cniVersion":"1.0.0","name":""})"))["code"], 7);
  EXPECT_EQ(Json(Call({}, R"({"cniVersion":"9.0.0","name":"n"})"))["code"], 1);
}

TEST(PluginProcessTest, OversizedInputIsRefusedWithoutReadingItAll) {
  const auto output = Call({}, std::string(16 << 20, ' '));
  EXPECT_GT(output.taken, 1U << 20);
  EXPECT_LT(output.taken, 2U << 20);
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(Json(output)["code"], 6);
  EXPECT_NE(output.out.find("larger than 1048576 bytes"), std::string::npos);
}

TEST(PluginProcessTest, CommandLine) {
  const auto help = RunProcess({ECHO_PLUGIN, "--help"}, {}, "");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("usage: CNI_COMMAND="), std::string::npos);
  EXPECT_NE(help.out.find("No more help.\n"), std::string::npos);
  const auto version = RunProcess({ECHO_PLUGIN, "--version"}, {}, "");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out.rfind("echo-plugin ", 0), 0U);
  const auto unknown = RunProcess({ECHO_PLUGIN, "--frobnicate"}, {{"CNI_COMMAND", "ADD"}}, kConfig);
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_NE(unknown.err.find("unknown option '--frobnicate'"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
