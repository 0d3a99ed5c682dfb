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
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/support/http/connection.h"
#include "deviceplugin/support/http/http_client.h"
#include "deviceplugin/support/http/http_stream.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"
#include "netns/json/record_forms.h"

namespace railhead {

// How to reach the Kubernetes API, and as which client.
//
// An object `kubernetes` of fabric.json, such as that of `addresses.index`:
//
//   `{"kubeconfig": PATH, "context": NAME, "timeoutSeconds": 5}`
//
// Without `kubeconfig` access is as in every pod: by the service account's token and authority, and by
// KUBERNETES_SERVICE_HOST and _PORT. A kubeconfig is YAML or JSON. These fields are used: server,
// tls-server-name, certificate-authority, client-certificate, client-key (each also with -data), token and
// tokenFile. A field that would run a program, or make TLS worthless, is an error. Threads: pure functions
// over files. Errors: kInvalid, kMalformed, with the file and the place.

struct KubeConfig {
  std::string kubeconfig;  // "": in a pod
  std::string context;     // "": the file's current one
  std::chrono::seconds timeout{5};

  bool operator==(const KubeConfig&) const = default;
};

template <>
struct Shape<KubeConfig> {
  static void List(auto& f) {
    f("kubeconfig", &KubeConfig::kubeconfig);
    f("context", &KubeConfig::context);
    f("timeoutSeconds", &KubeConfig::timeout, {.min = 1, .max = 60});
  }
  static void Check(const KubeConfig& config, const record::Complain& complain);
};

// The variables of a pod's environment.
struct KubeService {
  std::string host;
  std::string port;
};

struct KubeAccess {
  http::HttpEndpoint endpoint;
  http::TlsSettings tls;
  std::string token;       // "": none
  std::string token_file;  // read for every call; before `token`
};

// Files are taken below `root`.
Result<KubeAccess> FindKubeAccess(const Root& root, const KubeConfig& config, const KubeService& service);

// YAML as JSON text, for the kinds of YAML that are read here: kubeconfig files and Kubernetes' objects.
// Scalars other than true, false and null stay text, also numbers. JSON is YAML, too. Threads: pure
// functions. Errors: kMalformed, with `what` and the line.

Result<std::string> YamlToJson(const std::string& yaml, const std::string& what);

// The documents of a stream, between lines of "---".
Result<std::vector<std::string>> YamlDocumentsToJson(const std::string& yaml, const std::string& what);

// JSON as YAML of many lines. A string stays a string for every reader. YAML 1.1 takes 0:43, no and 1e3 for
// something else, so all but plain words are in quotes. Bytes that are not UTF-8 are replaced.
std::string JsonToYaml(const nlohmann::ordered_json& json);

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
