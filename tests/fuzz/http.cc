// One HTTP request, as the bytes that have come so far.
#include <set>
#include <string>

#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

bool Same(const http::HttpParsed& one, const http::HttpParsed& other) {
  if (one.refuse != other.refuse || one.request.has_value() != other.request.has_value()) return false;
  return !one.request ||
         (one.request->method == other.request->method && one.request->path == other.request->path &&
          one.request->accept == other.request->accept);
}

void CheckRequest(const http::HttpRequest& request) {
  Require(!request.method.empty(), "a request has a method");
  for (const char c : request.method) Require(c > ' ' && c < '\x7f', "a method is a token");
  Require(request.path.starts_with('/'), "a path begins at the root");
  for (const char c : request.path) Require(c > ' ' && c < '\x7f' && c != '?', "a path is no query");
  Require(request.accept.find("\r\n") == std::string::npos, "a header is one line");
  (void)ContentTypeOf(FormatAccepted(request.accept));
}

void CheckAnswer(int status, const std::string& body) {
  http::HttpResponse response;
  response.status = status;
  response.body = body;
  for (const bool with_body : {true, false}) {
    const std::string text = FormatHttpResponse(response, with_body);
    const std::size_t end = text.find("\r\n\r\n");
    Require(end != std::string::npos, "an answer has a head");
    Require(text.starts_with("HTTP/1.1 " + std::to_string(status) + " "), "an answer begins with its status");
    Require(text.substr(end + 4) == (with_body ? body : ""), "the body is what follows");
    Require(text.find("Content-Length: " + std::to_string(body.size()) + "\r\n") < end,
            "an answer tells its length");
  }
}

void Read(const std::string& bytes) {
  const http::HttpParsed parsed = http::ParseHttpRequest(bytes);
  Require(!(parsed.request && parsed.refuse), "a request is not refused");
  if (parsed.NeedsMore()) return Require(bytes.size() < http::kMostRequestBytes, "nobody sends for ever");
  if (parsed.request) CheckRequest(*parsed.request);
  static const std::set<int> kRefusals = {400, 431, 505};
  if (parsed.refuse) Require(kRefusals.contains(*parsed.refuse), "a refusal is the client's fault");
  CheckAnswer(parsed.refuse.value_or(200), bytes);

  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return;
  Require(Same(parsed, http::ParseHttpRequest(bytes + "more")), "what follows the head changes nothing");
  if (end + 4 > http::kMostRequestBytes) return;
  Require(Same(parsed, http::ParseHttpRequest(bytes.substr(0, end + 4))), "the head is enough");
  for (std::size_t size = 0; size < end + 4; ++size) {
    Require(http::ParseHttpRequest(std::string_view(bytes).substr(0, size)).NeedsMore(),
            "half a head says nothing");
  }
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::fuzz::Read(railhead::fuzz::TextOf(data, size));
  return 0;
}
