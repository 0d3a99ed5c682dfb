// The little of HTTP/1.1 that a scraper and a probe need: a request without a body, an
// answer whose length is known, one of each per connection.
// Source: RFC 9112. What it does not know it refuses rather than guesses at.
// Threads: values and pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace railhead::http {

// Of the request's line and headers together. A body is never read.
inline constexpr std::size_t kMostRequestBytes = 8192;

struct HttpRequest {
  std::string method;
  std::string path;    // without query
  std::string accept;  // the header of that name, or ""
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// What `bytes` say as far as they go: nothing yet, a request, or the status to refuse with.
struct HttpParsed {
  std::optional<HttpRequest> request;
  std::optional<int> refuse;
  [[nodiscard]] bool NeedsMore() const { return !request && !refuse; }
};
HttpParsed ParseHttpRequest(std::string_view bytes);

// `with_body` is false for HEAD.
std::string FormatHttpResponse(const HttpResponse& response, bool with_body);

// Base64 as JSON carries bytes in it.
// Source: RFC 4648 section 4 (with padding).
// Threads: pure functions.

std::string EncodeBase64(std::string_view bytes);
// nullopt when it is none. White space is passed over: PEM in YAML has line breaks.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace railhead::http
