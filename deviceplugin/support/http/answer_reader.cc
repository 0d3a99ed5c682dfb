#include "deviceplugin/support/http/answer_reader.h"

#include <boost/beast/core/error.hpp>
#include <limits>
#include <utility>

namespace railhead::http {
namespace {

namespace http = boost::beast::http;

constexpr std::uint32_t kMostHeaderBytes = 32U << 10U;

}  // namespace

std::string FormatHttpCall(const HttpCall& call, const HttpEndpoint& endpoint) {
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

AnswerReader::AnswerReader(std::optional<std::size_t> most_bytes) : most_bytes_(most_bytes) {
  parser_.eager(true);
  parser_.header_limit(kMostHeaderBytes);
  parser_.body_limit(most_bytes.value_or(std::numeric_limits<std::uint64_t>::max()));
}

std::optional<std::string> AnswerReader::Take(std::string_view bytes) {
  pending_.append(bytes);
  while (!pending_.empty() && !parser_.is_done()) {
    boost::beast::error_code error;
    const std::size_t used = parser_.put(boost::asio::buffer(pending_), error);
    pending_.erase(0, used);
    if (error == http::error::need_more) return std::nullopt;
    // Boost 1.74 ignores the limit for a body with a content length.
    is_too_large_ =
        most_bytes_ && (error == http::error::body_limit ||
                        (parser_.is_header_done() && parser_.content_length().value_or(0) > *most_bytes_));
    if (is_too_large_) return "larger than " + std::to_string(*most_bytes_) + " bytes";
    if (error) return error.message();
    if (used == 0) return std::nullopt;
  }
  return std::nullopt;
}

bool AnswerReader::End() {
  if (!parser_.got_some()) return false;
  boost::beast::error_code error;
  parser_.put_eof(error);
  return !error && parser_.is_done();
}

std::string AnswerReader::TakeBody() {
  return std::exchange(parser_.get().body(), {});
}

HttpAnswer AnswerReader::Release() {
  auto message = parser_.release();
  HttpAnswer answer;
  answer.status = static_cast<int>(message.result_int());
  const auto retry_after = message[http::field::retry_after];
  answer.retry_after.assign(retry_after.data(), retry_after.size());
  answer.body = std::move(message.body());
  return answer;
}

}  // namespace railhead::http
