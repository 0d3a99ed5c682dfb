// The part of HTTP/1.1 that a scraper and a probe need. Each connection has one request without a body, and
// one answer of known length. Everything else is refused. Source: RFC 9112. Threads: values and pure
// functions.
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

// What `bytes` contain so far: nothing complete, a request, or a reason to refuse with a status.
struct HttpParsed {
  std::optional<HttpRequest> request;
  std::optional<int> refuse;
  [[nodiscard]] bool NeedsMore() const { return !request && !refuse; }
};
HttpParsed ParseHttpRequest(std::string_view bytes);

// `with_body` is false for HEAD.
std::string FormatHttpResponse(const HttpResponse& response, bool with_body);

}  // namespace railhead::http
