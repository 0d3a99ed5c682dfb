#include <gtest/gtest.h>

#include <map>

#include "cni/protocol/cni_result.h"
#include "cni/protocol/plugin.h"

namespace railhead {
namespace {

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

TEST(ReadEnvironmentTest, DelNeedsNoNamespace) {
  EXPECT_TRUE(Read({{"CNI_COMMAND", "DEL"}, {"CNI_NETNS", ""}}));
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

TEST(CniErrorTest, CodesFollowFromErrors) {
  EXPECT_EQ(CniCodeOf(ErrorCode::kMalformed), 6);
  EXPECT_EQ(CniCodeOf(ErrorCode::kInvalid), 7);
  EXPECT_EQ(CniCodeOf(ErrorCode::kNamespace), 8);
  EXPECT_EQ(CniCodeOf(ErrorCode::kIo), 5);
  EXPECT_EQ(CniCodeOf(ErrorCode::kBusy), 11);
  EXPECT_EQ(CniCodeOf(ErrorCode::kTimeout), 11);
  EXPECT_EQ(CniCodeOf(ErrorCode::kInternal), 999);
  EXPECT_EQ(CniCodeOf(ErrorCode::kUnavailable), 50);
  EXPECT_EQ(CniCodeOf(ErrorCode::kLimited), 51);
  for (const int code : {5, 6, 7, 8, 11, 50, 51, 101, 102, 103, 104, 105, 106, 999}) {
    EXPECT_EQ(CniCodeOf(ErrorCodeOfCni(code)), code);
  }
  EXPECT_EQ(ErrorCodeOfCni(4711), ErrorCode::kIo);
}

TEST(CniErrorTest, Json) {
  EXPECT_EQ(
      CniErrorJson("1.0.0", 7, "bad \"thing\" \xff", ""),
      "{\n  \"cniVersion\": \"1.0.0\",\n  \"code\": 7,\n  \"msg\": \"bad \\\"thing\\\" \xef\xbf\xbd\"\n}\n");
  EXPECT_NE(CniErrorJson("1.0.0", 7, "m", "do it").find("\"details\": \"do it\""), std::string::npos);
}

TEST(RequestTest, InterfaceNamesAreTheKernels) {
  for (const std::string good : {"a", "net1", "eth0.100", "rail-0_x", "fifteen-letters"}) {
    EXPECT_TRUE(IsInterfaceName(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("a:b"),
        std::string("a b"), std::string("a\tb"), std::string("a\0b", 3), std::string("sixteen-letters-")}) {
    EXPECT_FALSE(IsInterfaceName(bad)) << bad;
  }
}

}  // namespace
}  // namespace railhead
