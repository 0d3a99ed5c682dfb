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
#pragma once

#include <chrono>
#include <string>

#include "deviceplugin/support/http/connection.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/json/record_forms.h"

namespace railhead {

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

}  // namespace railhead
