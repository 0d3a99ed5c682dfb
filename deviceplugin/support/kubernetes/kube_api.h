// Calls of the Kubernetes API on one kind of resource at a time, as JSON.
//
// Threads: one at a time; sent() from any. Errors: those of HttpClient, and kMalformed. By status: 401 and
// 403 kPermission, 409 kConflict, 504 kTimeout, 429 and other 5xx kUnavailable. A request that the server
// refuses gives kInvalid, also if the server does not know the resource. A missing object and a list that is
// too old are statuses here, not errors.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "deviceplugin/support/http/http_client.h"
#include "deviceplugin/support/http/http_stream.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead {

struct KubeAnswer {
  enum class Status : std::uint8_t { kDone, kNotFound, kExpired };
  Status status = Status::kDone;
  JsonDocument document;
};

// The manifests that the cluster needs for the calls. Hints of refusals name them.
struct KubeNeeds {
  std::string component = "manifests/components/node-index";
  std::string role = "railhead-node-index";
};

class KubeApi {
 public:
  // `most_bytes`: of an answer.
  KubeApi(const KubeAccess& access, std::chrono::milliseconds timeout, KubeNeeds needs = {},
          std::size_t most_bytes = http::HttpClientSettings{}.most_bytes);

  // `target` is the path and query, `type` the body's. GET is repeated when its connection breaks, nothing
  // else is.
  Result<KubeAnswer> Call(const std::string& method, const std::string& target, const std::string& body = "",
                          const std::string& type = "application/json");
  // GET whose answer of status 2xx is read as it comes. nullopt: the server does not have the resource
  // version that `target` names, no longer or not yet.
  Result<std::optional<http::HttpStream>> Stream(const std::string& target);
  // By Call().
  [[nodiscard]] std::uint64_t sent() const { return client_.sent(); }

 private:
  [[nodiscard]] Result<http::HttpCall> CallOf(const std::string& method, const std::string& target,
                                              const std::string& body, const std::string& type) const;
  [[nodiscard]] Result<std::string> Token() const;

  const http::HttpClientSettings settings_;
  http::HttpClient client_;
  const KubeNeeds needs_;
  const std::string token_;
  const std::string token_file_;
};

// For a query's value.
std::string EscapeForQuery(const std::string& text);

}  // namespace railhead
