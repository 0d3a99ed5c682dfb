// The supported part of HTTP. No client can hold the server up.
#include "deviceplugin/support/http/http_server.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/metrics/http_client.h"
#include "tests/support/service/running.h"

namespace railhead::testing {
namespace {

using namespace std::chrono_literals;

TEST(HttpMessageTest, ReadsARequest) {
  const auto parsed = http::ParseHttpRequest(
      "GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nACCEPT:  text/plain \r\nAccept: b\r\n\r\nrest");
  ASSERT_TRUE(parsed.request);
  EXPECT_EQ(parsed.request->method, "GET");
  EXPECT_EQ(parsed.request->path, "/metrics");
  EXPECT_EQ(parsed.request->accept, "text/plain,b,");
  EXPECT_TRUE(http::ParseHttpRequest("HEAD / HTTP/1.0\r\n\r\n").request);
}

TEST(HttpMessageTest, EveryBeginningNeedsMore) {
  const std::string request = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t n = 0; n < request.size(); ++n)
    EXPECT_TRUE(http::ParseHttpRequest(request.substr(0, n)).NeedsMore()) << n;
  EXPECT_TRUE(http::ParseHttpRequest(request).request);
}

TEST(HttpMessageTest, RefusesWhatItDoesNotUnderstand) {
  const auto refusal = [](const std::string& bytes) {
    return http::ParseHttpRequest(bytes).refuse.value_or(0);
  };
  EXPECT_EQ(refusal("\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET /\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET  HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET metrics HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / x HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal("G(T / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET /\xC3\xA9 HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(refusal("GET / SPDY\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\n folded: x\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nX: " + std::string(http::kMostRequestBytes, 'x')), 431);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nX: " + std::string(http::kMostRequestBytes, 'x') + "\r\n\r\n"), 431);
}

TEST(HttpAddressTest, TakesAddressesAndNothingElse) {
  for (const char* good : {"127.0.0.1:9917", "0.0.0.0:0", "[::1]:65535", "[::]:80", "unix:/run/a.sock"}) {
    const auto address = http::ParseHttpAddress(good);
    ASSERT_TRUE(address) << good;
    EXPECT_EQ(ToString(*address), good);
  }
  for (const char* bad :
       {"", "9917", ":9917", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "::1:80", "[::1]", "[]:80", "[127.0.0.1]:80", "1.2.3:80", "unix:", "unix:/", "unix:relative"}) {
    const auto address = http::ParseHttpAddress(bad);
    ASSERT_FALSE(address) << bad;
    EXPECT_FALSE(address.error().hint.empty());
  }
  EXPECT_TRUE(http::ParseHttpAddress("unix:/" + std::string(106, 'x')));
  EXPECT_FALSE(http::ParseHttpAddress("unix:/" + std::string(107, 'x')));
}

// A page that takes until the test lets it end.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  bool AwaitInside() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [this] { return inside_ > 0; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};

class HttpServerTest : public ::testing::Test {
 protected:
  // Of the server that listens; "" when it did not within a minute.
  std::string Start(const std::string& address) {
    auto server = RunService<http::HttpServer>(
        http::HttpServer::Options{
            .name = "http",
            .address = *http::ParseHttpAddress(address),
            .is_slow = [](const http::HttpRequest& request) { return request.path == "/slow"; },
            .left = servers_.empty() ? &left_ : nullptr},
        [this](const http::HttpRequest& request) {
          if (request.path == "/slow") gate_.Pass();
          return http::HttpResponse{
              request.path == "/" ? 200 : 404, "text/plain",
              request.path == "/big" ? std::string(8 << 20, 'x') : "path " + request.path};
        },
        [this](const Result<std::string>& taken) {
          const std::lock_guard<std::mutex> lock(mutex_);
          reports_.push_back(taken ? *taken : "failed: " + Describe(taken.error()));
        });
    servers_.push_back(std::move(server));
    return Address(1);
  }
  // The report with that number, from 1.
  std::string Address(std::size_t number) {
    for (const auto end = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < end;) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (reports_.size() >= number) return reports_[number - 1];
      }
      std::this_thread::sleep_for(5ms);
    }
    return "";
  }

  std::mutex mutex_;
  std::vector<std::string> reports_;
  Gate gate_;
  Published<bool> left_;  // by the first server
  std::vector<Running<http::HttpServer>> servers_;
};

TEST_F(HttpServerTest, AnswersGetAndHead) {
  const std::string address = Start("127.0.0.1:0");
  const auto answer = Get(address, "/");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "path /");
  EXPECT_NE(answer->head.find("Content-Length: 6"), std::string::npos) << answer->head;
  EXPECT_EQ(Get(address, "/other")->status, 404);

  const UniqueFd head = Connect(address);
  Write(head, "HEAD / HTTP/1.1\r\n\r\n");
  const auto no_body = ReadAnswer(head);
  ASSERT_TRUE(no_body);
  EXPECT_NE(no_body->head.find("Content-Length: 6"), std::string::npos);
  EXPECT_EQ(no_body->body, "");

  const UniqueFd post = Connect(address);
  Write(post, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  const auto refused = ReadAnswer(post);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 405);
  EXPECT_NE(refused->head.find("Allow: GET, HEAD"), std::string::npos);
}

TEST_F(HttpServerTest, AnswersOverIpv6AndInPieces) {
  const std::string address = Start("[::1]:0");
  if (address.find("failed") == 0) GTEST_SKIP() << "no IPv6 here: " << address;
  const UniqueFd connection = Connect(address);
  for (const char c : std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) Write(connection, std::string(1, c));
  const auto answer = ReadAnswer(connection);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "path /");
}

TEST_F(HttpServerTest, SlowClientsHoldNobodyUp) {
  const std::string address = Start("127.0.0.1:0");
  // Some that say nothing, some that say half, some that do not read their answer: far more
  // than there are places.
  std::vector<UniqueFd> slow;
  slow.reserve(3 * http::HttpServer::kMostConnections);
  for (std::size_t i = 0; i < 3 * http::HttpServer::kMostConnections; ++i) {
    slow.push_back(Connect(address));
    ASSERT_TRUE(slow.back().valid());
    if (i % 3 == 1) Write(slow.back(), "GET / HTTP/1.1\r\n");
    if (i % 3 == 2) Write(slow.back(), "GET /big HTTP/1.1\r\n\r\n");
    const auto answer = Get(address, "/");
    ASSERT_TRUE(answer) << "behind " << i << " slow clients";
    EXPECT_EQ(answer->status, 200);
  }
}

TEST_F(HttpServerTest, ASlowPageHoldsNobodyUp) {
  const std::string address = Start("127.0.0.1:0");
  const UniqueFd slow = Connect(address);
  Write(slow, "GET /slow HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(gate_.AwaitInside());
  EXPECT_EQ(Get(address, "/")->status, 200);
  const UniqueFd head = Connect(address);
  Write(head, "HEAD /slow HTTP/1.1\r\n\r\n");
  EXPECT_EQ(Get(address, "/")->status, 200);
  gate_.Open();
  const auto answer = ReadAnswer(slow);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "path /slow");
  const auto without_body = ReadAnswer(head);
  ASSERT_TRUE(without_body);
  EXPECT_EQ(without_body->body, "");
}

// A client requests a page again and again while the page is still being made.
// A machine without a thread left, played by a default stack that fits into no memory.
TEST(BackgroundQueueTest, RefusesWhereNoThreadCanBegin) {
  const auto worker = Worker::Make().value();
  http::BackgroundQueue queue([](const http::HttpRequest&) { return http::HttpResponse{}; }, *worker);
  pthread_attr_t usual;
  pthread_attr_t huge;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 46U), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  EXPECT_FALSE(queue.Submit({}));
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  EXPECT_TRUE(queue.Submit({}));
  EXPECT_TRUE(worker->Wait(Worker::Clock::time_point::max())) << "there is an answer to take";
  EXPECT_TRUE(queue.Take()) << "the refused one is not in the way";
  EXPECT_FALSE(queue.Take());
}

TEST_F(HttpServerTest, SlowRequestsDoNotPileUp) {
  const std::string address = Start("127.0.0.1:0");
  std::vector<UniqueFd> waiting;
  for (std::size_t i = 0; i < http::BackgroundQueue::kMostWaiting; ++i) {
    waiting.push_back(Connect(address));
    Write(waiting.back(), "GET /slow HTTP/1.1\r\n\r\n");
    // Read before the next one comes.
    EXPECT_EQ(Get(address, "/")->status, 200);
  }
  ASSERT_TRUE(gate_.AwaitInside());
  EXPECT_EQ(Get(address, "/slow")->status, 503);
  waiting.pop_back();  // a scraper that gives up
  gate_.Open();
  for (const UniqueFd& one : waiting) EXPECT_TRUE(ReadAnswer(one));
  EXPECT_TRUE(Get(address, "/slow"));
  servers_.back().RequestStop();
  EXPECT_TRUE(servers_.back().AwaitEnd(60s));
}

TEST_F(HttpServerTest, ASilentClientIsLetGo) {
  const std::string address = Start("127.0.0.1:0");
  const UniqueFd silent = Connect(address);
  EXPECT_FALSE(ReadAnswer(silent)) << "the connection ends without an answer";
  EXPECT_TRUE(Get(address, "/"));
}

// The server does not keep an endless request: it refuses it while bytes still arrive.
TEST_F(HttpServerTest, ARequestWithoutEndIsCutOff) {
  const std::string address = Start("127.0.0.1:0");
  const UniqueFd endless = Connect(address);
  Write(endless, "GET / HTTP/1.1\r\nX: ");
  const std::string piece(4096, 'x');
  std::size_t sent = 0;
  // What the kernel's buffers hold on both sides, and far more than a request may have.
  constexpr std::size_t kEnough = std::size_t{256} << 20;
  for (ssize_t n = 1; n > 0 && sent < kEnough; sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
    n = ::send(endless.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
  EXPECT_LT(sent, kEnough) << "it hangs up";
  EXPECT_TRUE(Get(address, "/"));
}

TEST_F(HttpServerTest, HalfClosedAndNonsense) {
  const std::string address = Start("127.0.0.1:0");
  for (const std::string& said :
       {std::string(), std::string("G"), std::string("GET / HTTP/1.1\r\n"),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), std::string(3000, '\0')}) {
    const UniqueFd half = Connect(address);
    Write(half, said);
    ASSERT_EQ(::shutdown(half.get(), SHUT_WR), 0);
    const auto answer = ReadAnswer(half);
    EXPECT_TRUE(!answer || answer->status >= 400) << said;
    EXPECT_TRUE(Get(address, "/"));
  }
}

TEST_F(HttpServerTest, ABigAnswerComesWhole) {
  const auto answer = Get(Start("127.0.0.1:0"), "/big");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body.size(), std::size_t{8} << 20);
}

TEST_F(HttpServerTest, AnAddressInUseIsTakenWhenItIsFree) {
  const std::string address = Start("127.0.0.1:0");
  Start(address);
  EXPECT_NE(Address(2).find("failed: "), std::string::npos) << Address(2);
  EXPECT_NE(Address(2).find("in use"), std::string::npos) << Address(2);
  EXPECT_TRUE(Get(address, "/")) << "the first one goes on";
  servers_.erase(servers_.begin());
  EXPECT_EQ(Address(3), address);
  EXPECT_TRUE(Get(address, "/"));
  const std::lock_guard<std::mutex> lock(mutex_);
  EXPECT_EQ(reports_.size(), 3U) << "said once";
}

TEST_F(HttpServerTest, OneThatIsNotWantedGivesItsAddressUpAndTakesItBack) {
  const std::string address = Start("127.0.0.1:0");
  Start(address);
  EXPECT_NE(Address(2).find("failed"), std::string::npos);
  left_.Set(true);
  EXPECT_EQ(Address(3), address) << "the second one has it";
  left_.Set(false);
  EXPECT_NE(Address(4).find("failed"), std::string::npos);
  servers_.pop_back();
  EXPECT_EQ(Address(5), address) << "the first one has it again";
}

}  // namespace
}  // namespace railhead::testing
