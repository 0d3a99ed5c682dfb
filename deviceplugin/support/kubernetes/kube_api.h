// Calls of the Kubernetes API on one kind of resource at a time, as JSON.
//
// Threads: one at a time; sent() from any.
// Errors: those of HttpClient; kPermission (401, 403), kInvalid (what the server refuses, also
// because it does not know the resource), kConflict (409), kTimeout (504), kUnavailable (429 and
// other 5xx), kMalformed. An object that is not there and a list that is too old are no errors
// here but statuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "deviceplugin/support/http/http_client.h"
#include "deviceplugin/support/kubernetes/kube_config.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead {

struct KubeAnswer {
  enum class Status : std::uint8_t { kDone, kNotFound, kExpired };
  Status status = Status::kDone;
  JsonDocument document;
};

// What has to be applied to the cluster for the calls: hints of refusals name it.
struct KubeNeeds {
  std::string component = "manifests/components/kubernetes-store";
  std::string role = "railhead-leasing";
};

class KubeApi {
 public:
  KubeApi(const KubeAccess& access, std::chrono::milliseconds timeout, KubeNeeds needs = {});

  // `target` is the path and query, `type` the body's. GET is repeated when its connection breaks, nothing
  // else is.
  Result<KubeAnswer> Call(const std::string& method, const std::string& target, const std::string& body = "",
                          const std::string& type = "application/json");
  [[nodiscard]] std::uint64_t sent() const { return client_.sent(); }

 private:
  [[nodiscard]] Result<std::string> Token() const;

  HttpClient client_;
  const KubeNeeds needs_;
  const std::string token_;
  const std::string token_file_;
};

// For a query's value.
std::string EscapeForQuery(const std::string& text);

}  // namespace railhead
