#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_args.h"
#include "cni/protocol/cni_request.h"
#include "cni/protocol/cni_result.h"
#include "cni/protocol/read_request.h"
#include "tests/support/process.h"

namespace railhead::testing {
namespace {

using Environment = std::map<std::string, std::string>;
using Variables = std::map<std::string, std::string>;

tl::expected<CniRequest, CniFailure> Read(const Variables& changes) {
  Variables all{{"CNI_COMMAND", "ADD"},
                {"CNI_CONTAINERID", "c1"},
                {"CNI_NETNS", "/run/netns/x"},
                {"CNI_IFNAME", "net1"},
                {"CNI_PATH", "/a::/b:"}};
  for (const auto& [name, value] : changes) all[name] = value;
  return ReadEnvironment([all](const std::string& name) -> std::optional<std::string> {
    const auto found = all.find(name);
    return found == all.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

TEST(ReadEnvironmentTest, TakesEverything) {
  const auto request =
      Read({{"CNI_ARGS", "IgnoreUnknown=1;MAC=02:00:00:00:00:01;;X=a=b"}, {"CNI_NETNS_OVERRIDE", "1"}});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->command, "ADD");
  EXPECT_EQ(request->container_id, "c1");
  EXPECT_EQ(request->netns, "/run/netns/x");
  EXPECT_EQ(request->ifname, "net1");
  EXPECT_EQ(request->path, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(request->args.at("MAC"), "02:00:00:00:00:01");
  EXPECT_EQ(request->args.at("X"), "a=b");
  EXPECT_TRUE(request->netns_override);
}

TEST(ReadEnvironmentTest, RefusesWithCode4) {
  const std::vector<Variables> bad = {
      {{"CNI_COMMAND", ""}},
      {{"CNI_COMMAND", "add"}},
      {{"CNI_COMMAND", "ADD\n"}},
      {{"CNI_CONTAINERID", ""}},
      {{"CNI_CONTAINERID", "../x"}},
      {{"CNI_CONTAINERID", ".x"}},
      {{"CNI_CONTAINERID", "a b"}},
      {{"CNI_CONTAINERID", std::string(129, 'a')}},
      {{"CNI_IFNAME", ""}},
      {{"CNI_IFNAME", "."}},
      {{"CNI_IFNAME", ".."}},
      {{"CNI_IFNAME", "all"}},
      {{"CNI_IFNAME", "default"}},
      {{"CNI_IFNAME", "a/b"}},
      {{"CNI_IFNAME", "a:b"}},
      {{"CNI_IFNAME", "a b"}},
      {{"CNI_IFNAME", "sixteen_letters_"}},
      {{"CNI_NETNS", ""}},
      {{"CNI_COMMAND", "CHECK"}, {"CNI_NETNS", ""}},
      {{"CNI_ARGS", "MAC"}},
      {{"CNI_ARGS", "=1"}},
  };
  for (const auto& variables : bad) {
    const auto request = Read(variables);
    ASSERT_FALSE(request) << variables.begin()->first << "=" << variables.begin()->second;
    EXPECT_EQ(request.error().code, kCniBadEnvironment);
    EXPECT_NE(
        request.error().error.message.find(variables.begin()->first == "CNI_COMMAND" && variables.size() > 1
                                               ? "CNI_NETNS"
                                               : variables.begin()->first),
        std::string::npos)
        << request.error().error.message;
  }
}

// The runtime calls DEL after a failed ADD, with the same arguments, and keeps the sandbox until DEL
// succeeds.
TEST(ReadEnvironmentTest, DelPassesWithWhatAddRefuses) {
  const std::vector<Variables> bad = {
      {{"CNI_NETNS", ""}},     {{"CNI_NETNS", "run/netns/x"}}, {{"CNI_NETNS", "/run/a\nb"}},
      {{"CNI_IFNAME", "all"}}, {{"CNI_IFNAME", ".."}},         {{"CNI_IFNAME", "a/b"}},
      {{"CNI_IFNAME", "a b"}}, {{"CNI_IFNAME", "\x1b[31m"}},   {{"CNI_IFNAME", "sixteen_letters_"}},
      {{"CNI_ARGS", "MAC"}},   {{"CNI_ARGS", "=1"}},
  };
  for (Variables variables : bad) {
    SCOPED_TRACE(variables.begin()->first + "=" + variables.begin()->second);
    EXPECT_FALSE(Read(variables));
    variables["CNI_COMMAND"] = "DEL";
    const auto request = Read(variables);
    ASSERT_TRUE(request) << request.error().error.message;
    if (variables.contains("CNI_ARGS")) EXPECT_EQ(request->args, CniArgs{});
  }
  const auto request = Read({{"CNI_COMMAND", "DEL"}, {"CNI_ARGS", "X;IP=10.0.0.1"}});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->args, (CniArgs{{"IP", "10.0.0.1"}}));
  for (const char* name : {"K8S_POD_UID", "K8S_POD_NAME", "K8S_POD_NAMESPACE"})
    EXPECT_FALSE(Read({{"CNI_COMMAND", "DEL"}, {"CNI_ARGS", std::string(name) + "=../x"}}))
        << name << ": without it the call would be root's own";
  for (const char* name : {"CNI_IFNAME", "CNI_CONTAINERID"}) {
    const auto without = Read({{"CNI_COMMAND", "DEL"}, {name, ""}});
    ASSERT_FALSE(without) << name;
    EXPECT_EQ(without.error().code, kCniBadEnvironment);
  }
  EXPECT_FALSE(Read({{"CNI_COMMAND", "DEL"}, {"CNI_CONTAINERID", "../x"}})) << "it leads to the entry";
}

TEST(ReadEnvironmentTest, LongestNamesPass) {
  EXPECT_TRUE(Read({{"CNI_IFNAME", "fifteen_letters"}, {"CNI_CONTAINERID", std::string(128, 'a')}}));
}

TEST(ReadEnvironmentTest, VersionNeedsNothingElse) {
  const auto request = Read({{"CNI_COMMAND", "VERSION"}, {"CNI_CONTAINERID", ""}, {"CNI_IFNAME", ""}});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->command, "VERSION");
}

// GC and STATUS are about a network: what a runtime may have left in the environment
// about containers is not looked at.
TEST(ReadEnvironmentTest, GcAndStatusNeedThePathOnly) {
  for (const char* command : {"GC", "STATUS"}) {
    const auto request = Read({{"CNI_COMMAND", command},
                               {"CNI_CONTAINERID", "../x"},
                               {"CNI_IFNAME", "a/b"},
                               {"CNI_NETNS", ""},
                               {"CNI_ARGS", "MAC"}});
    ASSERT_TRUE(request) << request.error().error.message;
    EXPECT_EQ(request->command, command);
    EXPECT_EQ(request->path, (std::vector<std::string>{"/a", "/b"}));
    EXPECT_EQ(request->container_id + request->ifname + request->netns, "");
    const auto no_path = Read({{"CNI_COMMAND", command}, {"CNI_PATH", ""}});
    ASSERT_FALSE(no_path);
    EXPECT_EQ(no_path.error().code, kCniBadEnvironment);
    EXPECT_NE(no_path.error().error.message.find("CNI_PATH"), std::string::npos);
  }
}

TEST(ReadEnvironmentTest, MessagesAreSafeToPrint) {
  const auto request = Read({{"CNI_IFNAME", std::string("\x1b[31m") + std::string(200, 'x')}});
  ASSERT_FALSE(request);
  const std::string& message = request.error().error.message;
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 150U);
}

int CodeOf(const std::string& config, const std::string& command = "ADD") {
  CniRequest request;
  request.command = command;
  const auto read = ReadConfiguration(config, request);
  return read ? 0 : read.error().code;
}

TEST(ReadConfigurationTest, NamesOfNetworks) {
  const auto code = [](std::size_t size) {
    return CodeOf(R"({"cniVersion":"1.0.0","name":")" + std::string(size, 'n') + "\"}");
  };
  EXPECT_EQ(code(253), 0);
  EXPECT_EQ(code(254), kCniInvalidConfig);
}

TEST(ReadConfigurationTest, Codes) {
  EXPECT_EQ(CodeOf(R"({"cniVersion":"1.0.0","name":"n"})"), 0);
  EXPECT_EQ(CodeOf(""), kCniDecode);
  EXPECT_EQ(CodeOf("{"), kCniDecode);
  EXPECT_EQ(CodeOf(R"({"name":"n","name":"m"})"), kCniDecode);
  EXPECT_EQ(CodeOf("\"" + std::string(JsonDocument::kMaxSize, 'x') + "\""), kCniDecode);
  EXPECT_EQ(CodeOf("[]"), kCniInvalidConfig);
  EXPECT_EQ(CodeOf(R"({"cniVersion":1,"name":"n"})"), kCniInvalidConfig);
  EXPECT_EQ(CodeOf(R"({"cniVersion":"1.0.0"})"), kCniInvalidConfig);
  EXPECT_EQ(CodeOf(R"({"cniVersion":"1.0.0","name":"a/b"})"), kCniInvalidConfig);
  EXPECT_EQ(CodeOf(R"({"cniVersion":"1.0.0","name":7})"), kCniInvalidConfig);
  EXPECT_EQ(CodeOf(R"({"name":"n"})"), kCniIncompatibleVersion) << "the specification's default is 0.1.0";
  EXPECT_EQ(CodeOf(R"({"cniVersion":"0.2.0","name":"n"})"), kCniIncompatibleVersion);
  EXPECT_EQ(CodeOf(R"({"cniVersion":"2.0.0","name":"n"})"), kCniIncompatibleVersion);
}

TEST(ReadConfigurationTest, CheckNeeds040) {
  EXPECT_EQ(CodeOf(R"({"cniVersion":"0.3.1","name":"n"})", "CHECK"), kCniIncompatibleVersion);
  EXPECT_EQ(CodeOf(R"({"cniVersion":"0.4.0","name":"n"})", "CHECK"), 0);
  EXPECT_EQ(CodeOf(R"({"cniVersion":"0.3.0","name":"n"})"), 0);
}

TEST(ReadConfigurationTest, GcAndStatusNeed110) {
  for (const char* command : {"GC", "STATUS"}) {
    for (const char* version : {"0.3.0", "0.3.1", "0.4.0", "1.0.0"}) {
      EXPECT_EQ(CodeOf(std::string(R"({"name":"n","cniVersion":")") + version + "\"}", command),
                kCniIncompatibleVersion)
          << command << " " << version;
    }
    EXPECT_EQ(CodeOf(R"({"cniVersion":"1.1.0","name":"n"})", command), 0);
    EXPECT_EQ(CodeOf(R"({"cniVersion":"1.1.0"})", command), kCniInvalidConfig);
  }
}

std::string ValidAttachmentsIn(const std::string& list) {
  const auto valid = ReadValidAttachments(R"({"cni.dev/valid-attachments":)" + list + "}");
  if (!valid) return std::string(NameOf(valid.error().code)) + ": " + valid.error().message;
  std::string text = "valid:";
  for (const auto& attachment : *valid) text += " " + attachment.container_id + "/" + attachment.ifname;
  return text;
}

TEST(ReadValidAttachmentsTest, TakesTheList) {
  EXPECT_EQ(ValidAttachmentsIn("[]"), "valid:");
  EXPECT_EQ(
      ValidAttachmentsIn(R"([{"containerID":"a","ifname":"eth0"},{"ifname":"net1","containerID":"b"}])"),
      "valid: a/eth0 b/net1");
  EXPECT_EQ(ValidAttachmentsIn(R"([{"containerID":"a","ifname":"eth0","network":"later version"}])"),
            "valid: a/eth0");
}

TEST(ReadValidAttachmentsTest, WhatIsNoListIsNeverAnEmptyOne) {
  const std::string where = "invalid: network configuration: /cni.dev~1valid-attachments";
  EXPECT_EQ(ValidAttachmentsIn("null"), where + ": is missing: GC would not know what is in use");
  EXPECT_EQ(ReadValidAttachments("{}").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ValidAttachmentsIn("{}"), where + ": is not a list of objects but object");
  EXPECT_EQ(ValidAttachmentsIn(R"("none")"), where + ": is not a list of objects but string");
  const std::string sound = R"({"containerID":"a","ifname":"eth0"})";
  EXPECT_EQ(ValidAttachmentsIn("[" + sound + ",7]"), where + "/1: is not an object but number");
  EXPECT_EQ(ValidAttachmentsIn("[" + sound + R"(,{"ifname":"eth0"}])"),
            where + "/1/containerID: is required and must not be empty");
  EXPECT_EQ(ValidAttachmentsIn(R"([{"containerID":"a","ifname":""}])"),
            where + "/0/ifname: is required and must not be empty");
  EXPECT_EQ(ValidAttachmentsIn(R"([{"containerID":7,"ifname":"eth0"}])"),
            where + "/0/containerID: is not a string but number");
}

TEST(RequestTest, InterfaceNamesAreTheKernels) {
  for (const std::string good : {"a", "net1", "eth0.100", "rail-0_x", "fifteen-letters"}) {
    EXPECT_TRUE(IsInterfaceName(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("a:b"),
        std::string("all"), std::string("default"), std::string("a b"), std::string("a\tb"),
        std::string("a\0b", 3), std::string("sixteen-letters-")}) {
    EXPECT_FALSE(IsInterfaceName(bad)) << bad;
  }
}

// The protocol of a whole plugin process: command line, environment, standard input
// and output, exit status.

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

// Undo steps run, and the runtime gets an error that it understands.
TEST(PluginProcessTest, AnExceptionIsAnInternalErrorAfterTheUndo) {
  const auto output = Call({}, R"({"cniVersion":"1.0.0","name":"huge","type":"echo"})");
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(Json(output)["cniVersion"], "1.0.0");
  EXPECT_EQ(Json(output)["code"], 999);
  EXPECT_NE(output.err.find("undone"), std::string::npos) << output.err;
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
