#include "deviceplugin/support/http/http_client.h"

#include <array>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace railhead::http {
namespace {

namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadSize = std::size_t{16} << 10;
constexpr std::uint32_t kMostHeaderBytes = 32U << 10U;

std::string FormatRequest(const HttpCall& call, const HttpEndpoint& endpoint) {
  std::string text = call.method + " " + endpoint.path + call.target + " HTTP/1.1\r\n";
  text += "Host: " + endpoint.Authority() + "\r\n";
  text += "User-Agent: railheadd/" RAILHEAD_VERSION "\r\n";
  text += "Accept: application/json\r\n";
  for (const auto& [name, value] : call.headers) {
    // A line break in a header would begin another one.
    if (value.find_first_of("\r\n") != std::string::npos) continue;
    text.append(name).append(": ").append(value).append("\r\n");
  }
  if (!call.body.empty() || call.method != "GET") {
    text += "Content-Length: " + std::to_string(call.body.size()) + "\r\n";
  }
  return text + "\r\n" + call.body;
}

// An answer as it comes in.
class AnswerReader {
 public:
  explicit AnswerReader(std::size_t most_bytes) : most_bytes_(most_bytes) {
    parser_.eager(true);
    parser_.header_limit(kMostHeaderBytes);
    parser_.body_limit(most_bytes);
  }

  [[nodiscard]] bool IsDone() const { return parser_.is_done(); }
  [[nodiscard]] bool HasBegun() const { return parser_.got_some(); }
  // Whether the connection holds no further bytes and may be used again.
  [[nodiscard]] bool MayStay() const { return pending_.empty() && parser_.get().keep_alive(); }

  // The error's text; nullopt: good so far.
  std::optional<std::string> Take(std::string_view bytes) {
    pending_.append(bytes);
    while (!pending_.empty() && !parser_.is_done()) {
      boost::beast::error_code error;
      const std::size_t used = parser_.put(boost::asio::buffer(pending_), error);
      pending_.erase(0, used);
      if (error == http::error::need_more) return std::nullopt;
      if (error) return error.message();
      // Boost 1.74 ignores the limit for a body with a content length.
      if (parser_.is_header_done() && parser_.content_length().value_or(0) > most_bytes_) {
        return "larger than " + std::to_string(most_bytes_) + " bytes";
      }
      if (used == 0) return std::nullopt;
    }
    return std::nullopt;
  }

  // The server has closed the connection. true: this answer ends that way.
  bool End() {
    if (!parser_.got_some()) return false;
    boost::beast::error_code error;
    parser_.put_eof(error);
    return !error && parser_.is_done();
  }

  HttpAnswer Release() {
    auto message = parser_.release();
    HttpAnswer answer;
    answer.status = static_cast<int>(message.result_int());
    const auto retry_after = message[http::field::retry_after];
    answer.retry_after.assign(retry_after.data(), retry_after.size());
    answer.body = std::move(message.body());
    return answer;
  }

 private:
  const std::size_t most_bytes_;
  http::response_parser<http::string_body> parser_;
  std::string pending_;
};

}  // namespace

HttpClient::HttpClient(HttpClientSettings settings) : settings_(std::move(settings)) {}
HttpClient::~HttpClient() = default;

Result<HttpAnswer> HttpClient::Exchange(const std::string& request, Deadline deadline, bool& sent) {
  sent_.fetch_add(1, std::memory_order_relaxed);
  // A server does nothing about a request that lacks its end.
  RH_TRY(connection_->Write(request, deadline));
  sent = true;
  AnswerReader reader(settings_.most_bytes);
  std::array<char, kReadSize> buffer;
  while (!reader.IsDone()) {
    const std::size_t got = RH_TRY(connection_->Read(buffer.data(), buffer.size(), deadline));
    if (got == 0 && !reader.End()) {
      return Fail(ErrorCode::kUnavailable, settings_.endpoint.ToString() + " has closed the connection " +
                                               (reader.HasBegun() ? "in the middle of" : "before") +
                                               " its answer");
    }
    if (const auto wrong = reader.Take({buffer.data(), got})) {
      return Fail(ErrorCode::kMalformed, "the answer of " + settings_.endpoint.ToString() + ": " + *wrong,
                  "see that this is the address of the API and not of something else");
    }
  }
  if (!reader.MayStay()) connection_.reset();
  HttpAnswer answer = reader.Release();
  answer.from = settings_.endpoint.ToString();
  return answer;
}

Result<HttpAnswer> HttpClient::Send(const HttpCall& call) {
  const Deadline deadline = Clock::now() + settings_.timeout;
  const std::string request = FormatRequest(call, settings_.endpoint);
  bool sent = false;
  const auto exchange = [&] {
    auto answer = Exchange(request, deadline, sent);
    // What comes late over it would be taken for the next call's answer.
    if (!answer || answer->status >= 500) connection_.reset();
    return answer;
  };
  // The server may just be closing a kept connection.
  if (connection_ != nullptr && connection_->IsIdle()) {
    auto answer = exchange();
    const bool may_repeat =
        !answer && answer.error().code == ErrorCode::kUnavailable && (!sent || call.repeatable);
    if (!may_repeat) return answer;
  }
  connection_ = RH_TRY(Connection::Open(settings_.endpoint, settings_.tls, deadline));
  return exchange();
}

}  // namespace railhead::http
