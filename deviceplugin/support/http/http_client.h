// HTTP/1.1 with a deadline for each call, over one kept connection, to the first of several endpoints that
// answers.
//
// If an endpoint fails, the client goes on with the next one, and stays with that. A call goes to another
// endpoint only if it was not sent, or if it is `repeatable`. The endpoints share the call's time, so that
// one that hangs does not use up the whole time. Every complete answer is returned, whatever its status.
// Redirects are not followed, and proxies are not used.
//
// Threads: one call at a time; sent() from any thread. Errors: those of Connection. After kTimeout and
// kUnavailable the server may or may not have done what the call requested. An answer that is too large, or
// is not HTTP, gives kMalformed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/support/http/connection.h"
#include "netns/base/result.h"

namespace railhead::http {

struct HttpCall {
  std::string method;
  std::string target;  // path and query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool repeatable = false;  // it changes nothing
};

struct HttpAnswer {
  int status = 0;
  std::string retry_after;
  std::string body;
  std::string from;  // the endpoint
};

struct HttpClientSettings {
  std::vector<HttpEndpoint> endpoints;  // at least one
  TlsSettings tls;
  std::chrono::milliseconds timeout{5000};
  std::size_t most_bytes = std::size_t{4} << 20;  // of an answer
};

class HttpClient {
 public:
  explicit HttpClient(HttpClientSettings settings);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  Result<HttpAnswer> Send(const HttpCall& call);
  // How many requests were sent.
  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }

 private:
  struct Attempt {
    Result<HttpAnswer> answer;
    bool sent = false;  // the server may have got the whole request
  };
  Attempt Try(const HttpCall& call, const HttpEndpoint& endpoint, Deadline opened_by, Deadline answered_by);
  Result<HttpAnswer> Exchange(const std::string& request, const HttpEndpoint& endpoint, Deadline deadline,
                              bool& sent);

  const HttpClientSettings settings_;
  std::unique_ptr<Connection> connection_;  // to settings_.endpoints[current_]
  std::size_t current_ = 0;
  std::atomic<std::uint64_t> sent_{0};
};

}  // namespace railhead::http
