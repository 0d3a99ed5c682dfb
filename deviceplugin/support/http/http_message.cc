#include "deviceplugin/support/http/http_message.h"

#include <openssl/evp.h>

#include <algorithm>

#include "netns/base/text.h"

namespace railhead::http {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

bool IsToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || kMarks.find(c) != std::string_view::npos;
  });
}

bool IsTarget(std::string_view text) {
  return text.starts_with('/') && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

HttpParsed Refuse(int status) {
  return {std::nullopt, status};
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "GET /metrics HTTP/1.1"
HttpParsed ParseRequestLine(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return Refuse(400);
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(method) || !IsTarget(target)) return Refuse(400);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return Refuse(version.starts_with("HTTP/") ? 505 : 400);
  HttpRequest request;
  request.method = method;
  request.path = target.substr(0, target.find('?'));
  return {std::move(request), std::nullopt};
}

}  // namespace

HttpParsed ParseHttpRequest(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return bytes.size() >= kMostRequestBytes ? Refuse(431) : HttpParsed{};
  if (end + 4 > kMostRequestBytes) return Refuse(431);
  std::string_view head = bytes.substr(0, end);
  const std::size_t line_end = std::min(head.find(kLineEnd), head.size());
  HttpParsed parsed = ParseRequestLine(head.substr(0, line_end));
  if (!parsed.request) return parsed;
  head.remove_prefix(std::min(line_end + kLineEnd.size(), head.size()));
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find(kLineEnd));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) return Refuse(400);
    const std::string_view value = Trim(line.substr(colon + 1));
    if (ToLower(line.substr(0, colon)) == "accept") parsed.request->accept.append(value).append(",");
    head.remove_prefix(std::min(line.size() + kLineEnd.size(), head.size()));
  }
  return parsed;
}

std::string FormatHttpResponse(const HttpResponse& response, bool with_body) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
  text.append(ReasonOf(response.status)).append(kLineEnd);
  text.append("Content-Type: ").append(response.content_type).append(kLineEnd);
  text.append("Content-Length: ").append(std::to_string(response.body.size())).append(kLineEnd);
  if (response.status == 405) text.append("Allow: GET, HEAD").append(kLineEnd);
  text.append("Cache-Control: no-store").append(kLineEnd);
  text.append("Connection: close").append(kLineEnd).append(kLineEnd);
  if (with_body) text.append(response.body);
  return text;
}

}  // namespace railhead::http
