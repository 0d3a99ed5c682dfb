// A request as its text, and an answer as it comes in: what a call and a stream have in common.
//
// Source: RFC 9112. Threads: values; one at a time.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "deviceplugin/support/http/connection.h"
#include "deviceplugin/support/http/http_client.h"

namespace railhead::http {

// To read from a connection at once.
inline constexpr std::size_t kReadSize = std::size_t{16} << 10;

std::string FormatHttpCall(const HttpCall& call, const HttpEndpoint& endpoint);

class AnswerReader {
 public:
  // `most_bytes`: of the body; nullopt: it has no end, and TakeBody() keeps it small.
  explicit AnswerReader(std::optional<std::size_t> most_bytes);

  [[nodiscard]] bool IsDone() const { return parser_.is_done(); }
  [[nodiscard]] bool HasBegun() const { return parser_.got_some(); }
  [[nodiscard]] bool IsTooLarge() const { return is_too_large_; }
  [[nodiscard]] bool HasHead() const { return parser_.is_header_done(); }
  // Whether the connection holds no further bytes and may be used again.
  [[nodiscard]] bool MayStay() const { return pending_.empty() && parser_.get().keep_alive(); }

  // The error's text; nullopt: good so far.
  std::optional<std::string> Take(std::string_view bytes);
  // The server has closed the connection. true: this answer ends that way.
  bool End();

  [[nodiscard]] int status() const { return static_cast<int>(parser_.get().result_int()); }
  // What has come of the body since the last call.
  std::string TakeBody();
  // Of an answer that is done, or whose body is not wanted.
  HttpAnswer Release();

 private:
  const std::optional<std::size_t> most_bytes_;
  boost::beast::http::response_parser<boost::beast::http::string_body> parser_;
  std::string pending_;
  bool is_too_large_ = false;
};

}  // namespace railhead::http
