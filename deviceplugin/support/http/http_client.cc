#include "deviceplugin/support/http/http_client.h"

#include <array>
#include <cerrno>
#include <utility>

#include "deviceplugin/support/http/answer_reader.h"

namespace railhead::http {
namespace {

using Clock = std::chrono::steady_clock;

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
      Error error{ErrorCode::kMalformed, "the answer of " + settings_.endpoint.ToString() + ": " + *wrong,
                  "see that this is the address of the API and not of something else", 0};
      if (reader.IsTooLarge()) error.sys_errno = EMSGSIZE;
      return Fail(std::move(error));
    }
  }
  if (!reader.MayStay()) connection_.reset();
  HttpAnswer answer = reader.Release();
  answer.from = settings_.endpoint.ToString();
  return answer;
}

Result<HttpAnswer> HttpClient::Send(const HttpCall& call) {
  const Deadline deadline = Clock::now() + settings_.timeout;
  const std::string request = FormatHttpCall(call, settings_.endpoint);
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
