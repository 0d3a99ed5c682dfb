// CNI results in every version, byte by byte.
#include "cni/protocol/cni_result.h"

#include <gtest/gtest.h>

namespace railhead {
namespace {

CniResult Full() {
  CniResult result;
  result.interfaces.push_back({"net1", "02:00:00:00:00:01", "/run/netns/x", 9000, "0000:43:10.0"});
  result.ips.push_back({*IpPrefix::Parse("10.0.0.7/24"), IpAddress::Parse("10.0.0.254"), 0});
  result.ips.push_back({*IpPrefix::Parse("fd00::7/64"), std::nullopt, 0});
  CniRoute route;
  route.destination = *IpPrefix::Parse("10.0.0.0/8");
  route.gateway = IpAddress::Parse("10.0.0.254");
  route.mtu = 4200;
  route.table = 100;
  result.routes.push_back(route);
  return result;
}

constexpr const char* kInterfaceOld = R"(  "interfaces": [
    {
      "name": "net1",
      "mac": "02:00:00:00:00:01",
      "sandbox": "/run/netns/x"
    }
  ],
)";

std::string Ips(bool version) {
  const std::string v4 = version ? "      \"version\": \"4\",\n" : "";
  const std::string v6 = version ? "      \"version\": \"6\",\n" : "";
  return "  \"ips\": [\n    {\n" + v4 +
         "      \"interface\": 0,\n      \"address\": \"10.0.0.7/24\",\n      \"gateway\": \"10.0.0.254\"\n"
         "    },\n    {\n" +
         v6 + "      \"interface\": 0,\n      \"address\": \"fd00::7/64\"\n    }\n  ],\n";
}

std::string Routes(const std::string& more) {
  return "  \"routes\": [\n    {\n      \"dst\": \"10.0.0.0/8\",\n      \"gw\": \"10.0.0.254\"" + more +
         "\n    }\n  ],\n";
}

TEST(CniResultTest, GoldenUpTo040) {
  for (const std::string version : {"0.3.0", "0.3.1", "0.4.0"}) {
    EXPECT_EQ(CniResultJson(Full(), version), "{\n  \"cniVersion\": \"" + version + "\",\n" + kInterfaceOld +
                                                  Ips(true) + Routes("") + "  \"dns\": {}\n}\n");
  }
}

TEST(CniResultTest, Golden100) {
  EXPECT_EQ(CniResultJson(Full(), "1.0.0"), std::string("{\n  \"cniVersion\": \"1.0.0\",\n") + kInterfaceOld +
                                                Ips(false) + Routes("") + "  \"dns\": {}\n}\n");
}

TEST(CniResultTest, Golden110) {
  EXPECT_EQ(
      CniResultJson(Full(), "1.1.0"),
      "{\n  \"cniVersion\": \"1.1.0\",\n  \"interfaces\": [\n    {\n      \"name\": \"net1\",\n"
      "      \"mac\": \"02:00:00:00:00:01\",\n      \"mtu\": 9000,\n      \"sandbox\": \"/run/netns/x\",\n"
      "      \"pciID\": \"0000:43:10.0\"\n    }\n  ],\n" +
          Ips(false) + Routes(",\n      \"mtu\": 4200,\n      \"table\": 100") + "  \"dns\": {}\n}\n");
}

TEST(CniResultTest, EmptyResultIsValid) {
  EXPECT_EQ(CniResultJson({}, "1.0.0"), "{\n  \"cniVersion\": \"1.0.0\",\n  \"dns\": {}\n}\n");
}

TEST(CniResultTest, ReadsWhatItWrites) {
  for (const auto& version : SupportedCniVersions()) {
    const std::string text = CniResultJson(Full(), version);
    const auto result = ParseCniResult(text, "it");
    ASSERT_TRUE(result) << Describe(result.error());
    EXPECT_EQ(CniResultJson(*result, version), text);
  }
}

// Interface fields of an earlier plugin's result are kept.
TEST(CniResultTest, KeepsTheSocketOfAnInterface) {
  const auto result = ParseCniResult(
      R"({"cniVersion":"1.1.0","interfaces":[{"name":"vhost0","socketPath":"/run/vhost/0.sock"}]})", "it");
  ASSERT_TRUE(result) << Describe(result.error());
  EXPECT_NE(CniResultJson(*result, "1.1.0").find(R"("socketPath": "/run/vhost/0.sock")"), std::string::npos);
  EXPECT_EQ(CniResultJson(*result, "1.0.0").find("socketPath"), std::string::npos);
}

TEST(CniResultTest, ReadsOtherPluginsResults) {
  const auto result = ParseCniResult(
      R"({"cniVersion":"1.0.0","ips":[{"address":"10.1.0.5/24"}],"routes":[{"dst":"0.0.0.0/0"}],
          "dns":{"nameservers":["10.0.0.1"]},"new":{"field":[1]}})",
      "it");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ips.at(0).address.ToString(), "10.1.0.5/24");
  EXPECT_EQ(result->ips.at(0).interface, std::nullopt);
  EXPECT_EQ(result->routes.at(0).gateway, std::nullopt);
  EXPECT_NE(CniResultJson(*result, "1.0.0").find("10.0.0.1"), std::string::npos) << "dns is passed on";
}

TEST(CniResultTest, RefusesBrokenResults) {
  for (const char* text :
       {R"({"ips":[{"address":"10.1.0.5"}]})", R"({"ips":[{}]})", R"({"ips":{}})",
        R"({"ips":[{"address":7}]})", R"({"ips":[{"address":"10.1.0.5/24","gateway":"x"}]})",
        R"({"ips":[{"address":"10.1.0.5/33"}]})", R"({"routes":[{"dst":"nowhere"}]})",
        R"({"ips":[{"address":"10.1.0.5/24","interface":-1}]})"}) {
    const auto result = ParseCniResult(text, "it");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().message.rfind("it: /", 0), 0U) << result.error().message;
  }
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

}  // namespace
}  // namespace railhead
