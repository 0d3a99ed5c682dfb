// What the HTTP client makes of servers that answer well, badly, late or not at all.
#include "deviceplugin/support/http/http_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "deviceplugin/support/http/base64.h"
#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/http/http_server.h"
#include "tests/support/eventually.h"
#include "tests/support/kubernetes/scripted_server.h"
#include "tests/support/kubernetes/server_process.h"
#include "tests/support/service/running.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Step = ScriptedServer::Step;
using Clock = std::chrono::steady_clock;

http::HttpClientSettings Settings(const std::string& url, std::chrono::milliseconds timeout) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  http::HttpClientSettings settings;
  settings.endpoint = *http::ParseHttpEndpoint(url);
  settings.timeout = timeout;
  settings.most_bytes = 1000;
  return settings;
}

constexpr std::chrono::milliseconds kLong{60000};
constexpr std::chrono::milliseconds kShort{100};

http::HttpCall Read() {
  return {"GET", "/x?y=1", {}, "", true};
}
http::HttpCall Change() {
  return {"POST", "/x", {{"A", "b"}}, "body", false};
}

std::string Url(const ReservedPort& closed) {
  return "http://127.0.0.1:" + std::to_string(closed.number());
}

TEST(HttpClientTest, OneConnectionServesManyCalls) {
  ScriptedServer server(
      {{ScriptedServer::Answer(200, "one", "Retry-After: 7\r\n")},
       {"HTTP/1.1 409 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ntw\r\n1\r\no\r\n0\r\nT: v\r\n\r\n"},
       {ScriptedServer::Answer(200, "")}});
  http::HttpClient client(Settings(server.url() + "/base/", kLong));
  auto one = client.Send(Read());
  ASSERT_TRUE(one) << Describe(one.error());
  EXPECT_EQ(one->status, 200);
  EXPECT_EQ(one->body, "one");
  EXPECT_EQ(one->retry_after, "7");
  EXPECT_TRUE(server.last().starts_with("GET /base/x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:")) << server.last();
  auto two = client.Send(Change());
  ASSERT_TRUE(two) << Describe(two.error());
  EXPECT_EQ(two->status, 409);
  EXPECT_EQ(two->body, "two");
  EXPECT_TRUE(server.last().ends_with("\r\nA: b\r\nContent-Length: 4\r\n\r\nbody")) << server.last();
  EXPECT_EQ(client.Send(Read())->body, "");
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(client.sent(), 3U);
}

// Each of two processes has a socket of its own, and a path from which an ended one has not removed its
// socket.
TEST(HttpClientTest, ASocketOfTheMachine) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  const TempRoot directory;
  const auto serve = [&](const std::string& name) {
    return RunService<http::HttpServer>(
        http::HttpServer::Options{
            .name = "http", .address = *http::ParseHttpAddress("unix:" + directory.directory() + "/" + name)},
        [name](const http::HttpRequest& request) {
          return http::HttpResponse{200, "text/plain", name + " has " + request.path};
        },
        [](const Result<std::string>&) {});
  };
  const auto body = [&](const std::string& name) {
    http::HttpClient client(
        {.endpoint = {.host = directory.directory() + "/" + name}, .tls = {}, .timeout = kLong});
    const auto answer = client.Send(Read());
    return answer ? answer->body : Describe(answer.error());
  };
  auto one = serve("one");
  auto two = serve("two");
  ASSERT_TRUE(Eventually([&] { return body("one") == "one has /x"; })) << body("one");
  ASSERT_TRUE(Eventually([&] { return body("two") == "two has /x"; })) << body("two");
  one = {};
  EXPECT_NE(body("one").find("/one"), std::string::npos) << "named by its path";
  EXPECT_EQ(body("two"), "two has /x");
  one = serve("one");
  EXPECT_TRUE(Eventually([&] { return body("one") == "one has /x"; })) << body("one");
  EXPECT_NE(body(std::string(200, 'x')).find("107"), std::string::npos);
}

TEST(HttpClientTest, AHeaderCannotBringAnother) {
  ScriptedServer server({{ScriptedServer::Answer(200, "")}});
  http::HttpClient client(Settings(server.url(), kLong));
  http::HttpCall call = Read();
  call.headers = {{"A", "b\r\nEvil: 1"}};
  ASSERT_TRUE(client.Send(call));
  EXPECT_EQ(server.last().find("Evil"), std::string::npos);
}

TEST(HttpClientTest, AClosedConnectionIsMadeAnew) {
  ScriptedServer server({{ScriptedServer::Answer(200, "one"), true}, {ScriptedServer::Answer(200, "two")}});
  http::HttpClient client(Settings(server.url(), kLong));
  ASSERT_EQ(client.Send(Read())->body, "one");
  // A change, too, whether the server's farewell is seen before it is sent or not: then it is open.
  auto two = client.Send(Change());
  if (!two) {
    EXPECT_EQ(two.error().code, ErrorCode::kUnavailable);
    two = client.Send(Change());
  }
  ASSERT_TRUE(two) << Describe(two.error());
  EXPECT_EQ(two->body, "two");
}

TEST(HttpClientTest, AChangeWithoutAnswerIsNotRepeated) {
  ScriptedServer server({{"", true}, {ScriptedServer::Answer(200, "again")}});
  http::HttpClient client(Settings(server.url(), kLong));
  auto answer = client.Send(Change());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable) << Describe(answer.error());
  EXPECT_EQ(server.requests(), 1);
}

TEST(HttpClientTest, AnAnswerCutShortIsNone) {
  ScriptedServer server({{"HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nhalf", true}});
  http::HttpClient client(Settings(server.url(), kLong));
  auto answer = client.Send(Change());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().message.find("in the middle of its answer"), std::string::npos)
      << answer.error().message;
}

// Behind a load balancer another server may answer.
TEST(HttpClientTest, AfterAFailedServerComesANewConnection) {
  ScriptedServer server({{ScriptedServer::Answer(503, "no leader")}, {ScriptedServer::Answer(200, "read")}});
  http::HttpClient client(Settings(server.url(), kLong));
  EXPECT_EQ(client.Send(Read())->status, 503);
  EXPECT_EQ(client.Send(Read())->body, "read");
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClientTest, NothingIsWaitedForLongerThanTheDeadline) {
  ScriptedServer hanging({{"", false, false, true}});
  http::HttpClient client(Settings(hanging.url(), kShort));
  auto answer = client.Send(Change());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout) << Describe(answer.error());
}

TEST(HttpClientTest, NobodyThere) {
  const ReservedPort closed;
  http::HttpClient client(Settings(Url(closed), kLong));
  auto answer = client.Send(Change());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().message.find("connecting to"), std::string::npos) << answer.error().message;
  EXPECT_EQ(client.sent(), 0U);
}

TEST(HttpClientTest, AnUnknownName) {
  http::HttpClient client(Settings("http://no-such-host.invalid:1", kShort));
  auto answer = client.Send(Read());
  ASSERT_FALSE(answer);
  // The machine's name servers may refuse, or say nothing.
  EXPECT_TRUE(answer.error().code == ErrorCode::kUnavailable || answer.error().code == ErrorCode::kTimeout)
      << Describe(answer.error());
  EXPECT_NE(answer.error().hint.find("resolv.conf"), std::string::npos);
}

struct BadAnswer {
  const char* name;
  std::string bytes;
};

void PrintTo(const BadAnswer& answer, std::ostream* out) {
  *out << answer.name;
}

class BadAnswerTest : public ::testing::TestWithParam<BadAnswer> {};

TEST_P(BadAnswerTest, IsMalformed) {
  ScriptedServer server({{GetParam().bytes, true}});
  http::HttpClient client(Settings(server.url(), kLong));
  auto answer = client.Send(Change());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kMalformed) << Describe(answer.error());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadAnswerTest,
    ::testing::Values(BadAnswer{"NoHttp", "SSH-2.0-OpenSSH_9.2\r\n\r\n"},
                      BadAnswer{"TooLarge", ScriptedServer::Answer(200, std::string(1001, 'x'))},
                      BadAnswer{"TooLargeInChunks",
                                "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n" +
                                    std::string(0x1000, 'x') + "\r\n0\r\n\r\n"},
                      BadAnswer{"EndlessHead", "HTTP/1.1 200 X\r\nA: " + std::string(100000, 'x')},
                      BadAnswer{"NoLength", "HTTP/1.1 200 X\r\nContent-Length: -1\r\n\r\n"}),
    [](const auto& named) { return named.param.name; });

TEST(HttpEndpointTest, AreReadAsWritten) {
  auto endpoint = http::ParseHttpEndpoint("https://api-0.example:6443");
  ASSERT_TRUE(endpoint);
  EXPECT_TRUE(endpoint->tls);
  EXPECT_EQ(endpoint->host, "api-0.example");
  EXPECT_EQ(endpoint->port, "6443");
  endpoint = http::ParseHttpEndpoint("http://[fd00::1]:80/a/b/");
  ASSERT_TRUE(endpoint);
  EXPECT_FALSE(endpoint->tls);
  EXPECT_EQ(endpoint->ToString(), "http://[fd00::1]:80/a/b");
  EXPECT_EQ(http::ParseHttpEndpoint("https://api")->port, "443");
}

TEST(HttpEndpointTest, OthersAreRefused) {
  for (const char* url : {"", "api:6443", "ftp://a", "https://", "https://:1", "https://a:", "https://a:0",
                          "https://a:65536", "https://a:1x", "https://[::1", "https://[::1]2", "https://a b",
                          "https://user@host", "https://a/b?c", "https://a/\r\nb"}) {
    auto endpoint = http::ParseHttpEndpoint(url);
    ASSERT_FALSE(endpoint) << url;
    EXPECT_EQ(endpoint.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(endpoint.error().hint.empty());
  }
}

TEST(Base64Test, ThereAndBack) {
  // RFC 4648 section 10
  const std::vector<std::pair<std::string, std::string>> known = {{"", ""},
                                                                  {"f", "Zg=="},
                                                                  {"fo", "Zm8="},
                                                                  {"foo", "Zm9v"},
                                                                  {"foob", "Zm9vYg=="},
                                                                  {"fooba", "Zm9vYmE="},
                                                                  {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(http::EncodeBase64(bytes), text);
    EXPECT_EQ(http::DecodeBase64(text), bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(http::DecodeBase64(http::EncodeBase64(all)), all);
  EXPECT_EQ(http::DecodeBase64("Zm9v\nYmFy\n"), "foobar");
  for (const char* bad : {"Z", "Zg", "Zg=", "Zg===", "=", "Z===", "Zm9v!", "Zg==Zg==", "Zm9-"}) {
    EXPECT_EQ(http::DecodeBase64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace railhead::testing
