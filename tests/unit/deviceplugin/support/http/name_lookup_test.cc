// Names asked of name servers that answer, refuse, say nothing or are not there.
#include "deviceplugin/support/http/name_lookup.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "netns/base/unique_fd.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLookUpLong{60};
constexpr std::chrono::milliseconds kLookUpShort{200};

// kAnswersToA: it drops other queries.
enum class Kind : std::uint8_t { kAnswers, kAnswersToA, kKnowsNothing, kRefuses, kSilent };

// A name server on a loopback address. It gives every name its A records, and no AAAA records.
class NameServer {
 public:
  // `port` 0: any.
  explicit NameServer(Kind kind, std::vector<std::string> addresses = {}, const char* at = "127.0.0.1",
                      std::uint16_t port = 0)
      : kind_(kind), addresses_(std::move(addresses)), fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    own_.sin_family = AF_INET;
    own_.sin_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET, at, &own_.sin_addr), 1);
    socklen_t size = sizeof own_;
    EXPECT_EQ(::bind(fd_.get(), Own(), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), static_cast<sockaddr*>(static_cast<void*>(&own_)), &size), 0);
    thread_ = std::thread([this] { Serve(); });
  }
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  ~NameServer() {
    // An empty datagram ends it.
    (void)::sendto(fd_.get(), "", 0, 0, Own(), sizeof own_);
    thread_.join();
  }

  [[nodiscard]] std::uint16_t port() const { return ntohs(own_.sin_port); }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  // RFC 1035, section 4.1.
  static constexpr std::size_t kHeader = 12;
  static constexpr char kNameError = 3;
  static constexpr char kRefused = 5;

  [[nodiscard]] const sockaddr* Own() const {
    return static_cast<const sockaddr*>(static_cast<const void*>(&own_));
  }

  void Serve() {
    for (;;) {
      std::array<char, 512> buffer{};
      sockaddr_in from{};
      socklen_t size = sizeof from;
      auto* const peer = static_cast<sockaddr*>(static_cast<void*>(&from));
      const ssize_t got = ::recvfrom(fd_.get(), buffer.data(), buffer.size(), 0, peer, &size);
      if (got <= static_cast<ssize_t>(kHeader)) return;
      ++asked_;
      const std::string query(buffer.data(), static_cast<std::size_t>(got));
      if (kind_ == Kind::kSilent || (kind_ == Kind::kAnswersToA && !IsA(query))) continue;
      const std::string answer = AnswerTo(query);
      (void)::sendto(fd_.get(), answer.data(), answer.size(), 0, peer, size);
    }
  }

  // Type and class follow the name.
  static std::size_t EndOfQuestion(const std::string& query) { return query.find('\0', kHeader) + 5; }
  static bool IsA(const std::string& query) { return query.at(EndOfQuestion(query) - 3) == 1; }

  [[nodiscard]] std::string AnswerTo(const std::string& query) const {
    const std::size_t end = EndOfQuestion(query);
    const bool knows = kind_ == Kind::kAnswers || kind_ == Kind::kAnswersToA;
    const std::size_t records = knows && IsA(query) ? addresses_.size() : 0;
    const char code = kind_ == Kind::kRefuses ? kRefused : kind_ == Kind::kKnowsNothing ? kNameError : '\0';
    std::string answer = query.substr(0, 2);
    answer += {'\x81', static_cast<char>('\x80' | code), 0, 1, 0, static_cast<char>(records), 0, 0, 0, 0};
    answer += query.substr(kHeader, end - kHeader);
    for (std::size_t i = 0; i < records; ++i) {
      // The name of the question, A, IN, for a minute, four bytes.
      answer += {'\xc0', kHeader, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4};
      std::array<char, 4> packed{};
      EXPECT_EQ(::inet_pton(AF_INET, addresses_[i].c_str(), packed.data()), 1);
      answer.append(packed.data(), packed.size());
    }
    return answer;
  }

  const Kind kind_;
  const std::vector<std::string> addresses_;
  UniqueFd fd_;
  sockaddr_in own_{};
  std::atomic<int> asked_ = 0;
  std::thread thread_;
};

class NameLookupTest : public ::testing::Test {
 protected:
  // resolv.conf is `configuration`.
  Result<std::vector<http::SocketAddress>> LookUp(
      std::uint16_t port, Clock::duration time, const std::string& host = "store.example",
      const std::string& configuration = "nameserver 127.0.0.1\n") {
    temp_.Write("/etc/resolv.conf", configuration);
    return http::LookUp(host, "2379", Clock::now() + time, {temp_.directory() + "/etc/resolv.conf", port});
  }

  static std::vector<std::string> Texts(const Result<std::vector<http::SocketAddress>>& found) {
    std::vector<std::string> texts;
    if (!found) return {Describe(found.error())};
    for (const http::SocketAddress& one : *found) {
      sockaddr_in v4{};
      std::memcpy(&v4, &one.address, sizeof v4);
      std::array<char, INET_ADDRSTRLEN> text{};
      ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
      texts.push_back(std::string(text.data()) + ":" + std::to_string(ntohs(v4.sin_port)));
    }
    return texts;
  }

  TempRoot temp_;
};

TEST_F(NameLookupTest, AServerAnswers) {
  const NameServer server(Kind::kAnswers, {"127.0.0.7"});
  const auto found = LookUp(server.port(), kLookUpLong);
  EXPECT_EQ(Texts(found), (std::vector<std::string>{"127.0.0.7:2379"}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->front().length, sizeof(sockaddr_in));
}

TEST_F(NameLookupTest, AServerThatDropsOtherQueriesHoldsNothingUp) {
  const NameServer server(Kind::kAnswersToA, {"127.0.0.7"});
  EXPECT_EQ(Texts(LookUp(server.port(), std::chrono::seconds(9))),
            (std::vector<std::string>{"127.0.0.7:2379"}));
}

TEST_F(NameLookupTest, AddressesThatTheHostCannotReachAreLeftOut) {
  // Only sockets with SO_BROADCAST may be connected to the broadcast address.
  const NameServer server(Kind::kAnswers, {"255.255.255.255", "127.0.0.7"});
  EXPECT_EQ(Texts(LookUp(server.port(), kLookUpLong)), (std::vector<std::string>{"127.0.0.7:2379"}));
  const NameServer without(Kind::kAnswers, {"255.255.255.255"});
  EXPECT_EQ(Texts(LookUp(without.port(), kLookUpLong)), (std::vector<std::string>{"255.255.255.255:2379"}))
      << "connecting says why";
}

TEST_F(NameLookupTest, ASilentServerTakesNoLongerThanTheDeadline) {
  const NameServer server(Kind::kSilent);
  const auto found = LookUp(server.port(), kLookUpShort);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kTimeout) << Describe(found.error());
  EXPECT_NE(found.error().message.find("looking up 'store.example'"), std::string::npos);
  EXPECT_NE(found.error().hint.find("resolv.conf"), std::string::npos);
  EXPECT_TRUE(Eventually([&] { return server.asked() >= 1; })) << "its thread may be behind";
}

TEST_F(NameLookupTest, AfterTheDeadlineNothingIsWaitedFor) {
  const NameServer server(Kind::kAnswers, {"127.0.0.7"});
  const auto found = LookUp(server.port(), -kLookUpShort);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kTimeout) << Describe(found.error());
}

TEST_F(NameLookupTest, TheNextServerIsAskedInTime) {
  const NameServer silent(Kind::kSilent);
  const NameServer next(Kind::kAnswers, {"127.0.0.7"}, "127.0.0.2", silent.port());
  const auto found = LookUp(silent.port(), std::chrono::seconds(9), "store.example",
                            "nameserver 127.0.0.1\nnameserver 127.0.0.2\n");
  EXPECT_EQ(Texts(found), (std::vector<std::string>{"127.0.0.7:2379"}));
  EXPECT_GE(silent.asked(), 1);
}

TEST_F(NameLookupTest, ServersThatDoNotHelp) {
  const NameServer refusing(Kind::kRefuses);
  const NameServer ignorant(Kind::kKnowsNothing);
  std::uint16_t nobody = 0;
  {
    const NameServer gone(Kind::kSilent);
    nobody = gone.port();
  }
  for (const std::uint16_t port : {refusing.port(), ignorant.port(), nobody}) {
    const auto found = LookUp(port, kLookUpLong);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kUnavailable) << Describe(found.error());
    EXPECT_NE(found.error().hint.find("resolv.conf"), std::string::npos);
  }
  EXPECT_GE(refusing.asked(), 1);
  EXPECT_GE(ignorant.asked(), 1);
}

TEST_F(NameLookupTest, TheConfigurationIsReadForEachCall) {
  const NameServer silent(Kind::kSilent);
  const NameServer other(Kind::kAnswers, {"127.0.0.7"}, "127.0.0.2", silent.port());
  EXPECT_FALSE(LookUp(silent.port(), kLookUpShort));
  EXPECT_EQ(Texts(LookUp(silent.port(), kLookUpLong, "store.example", "nameserver 127.0.0.2\n")),
            (std::vector<std::string>{"127.0.0.7:2379"}));
}

TEST_F(NameLookupTest, NoServerIsAskedForWhatIsKnown) {
  const NameServer server(Kind::kAnswers, {"127.0.0.7"});
  EXPECT_EQ(Texts(LookUp(server.port(), kLookUpLong, "10.1.2.3")),
            (std::vector<std::string>{"10.1.2.3:2379"}));
  const auto v6 = LookUp(server.port(), kLookUpLong, "fd00::1");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->front().length, sizeof(sockaddr_in6));
  const auto socket = LookUp(server.port(), kLookUpLong, "/run/x.sock");
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->front().address.ss_family, AF_UNIX);
  EXPECT_TRUE(LookUp(server.port(), kLookUpLong, "localhost"));
  EXPECT_EQ(server.asked(), 0);
}

}  // namespace
}  // namespace railhead::testing
