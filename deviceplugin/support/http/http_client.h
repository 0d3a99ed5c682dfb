// HTTP/1.1 with a deadline for each call, over one kept connection.
//
// A call is tried once more, on a new connection, if the server has closed the kept one, and the call was not
// sent or is `repeatable`. Every complete answer is returned, whatever its status. After one of 500 or above
// the next call has a new connection: behind a load balancer another server may answer. Redirects are not
// followed, and proxies are not used.
//
// Threads: one call at a time; sent() from any thread. Errors: those of Connection. After kTimeout and
// kUnavailable the server may or may not have done what the call requested. An answer that is not HTTP gives
// kMalformed, and one that is too large kMalformed with EMSGSIZE.
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
  HttpEndpoint endpoint;
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
  // `sent`: the server may have got the whole request.
  Result<HttpAnswer> Exchange(const std::string& request, Deadline deadline, bool& sent);

  const HttpClientSettings settings_;
  std::unique_ptr<Connection> connection_;
  std::atomic<std::uint64_t> sent_{0};
};

}  // namespace railhead::http
