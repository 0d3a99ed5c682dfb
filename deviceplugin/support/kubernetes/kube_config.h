// How the Kubernetes API is reached, and who we are to it.
//
// The object `kubernetes` of a cluster store's configuration:
//   {"kubeconfig": PATH, "context": NAME, "timeoutSeconds": 5}
// Without `kubeconfig` it is as for every pod: the service account's token and authority, and
// KUBERNETES_SERVICE_HOST and _PORT. A kubeconfig is YAML or JSON; of it are used: server,
// tls-server-name, certificate-authority, client-certificate, client-key (each also with -data),
// token and tokenFile. What would have to be run or would make TLS worthless is an error.
// Threads: pure functions over files. Errors: kInvalid, kMalformed, with the file and the place.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "deviceplugin/support/http/connection.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead {

struct KubeConfig {
  std::string kubeconfig;  // "": in a pod
  std::string context;     // "": the file's current one
  std::chrono::seconds timeout{5};

  bool operator==(const KubeConfig&) const = default;
};

// Mistakes stick to the reader.
KubeConfig ReadKubeConfig(JsonReader& reader);

// What a pod's environment says.
struct KubeService {
  std::string host;
  std::string port;
};

struct KubeAccess {
  HttpEndpoint endpoint;
  TlsSettings tls;
  std::string token;       // "": none
  std::string token_file;  // read for every call; before `token`
};

// Files are taken below `root`.
Result<KubeAccess> FindKubeAccess(const Root& root, const KubeConfig& config, const KubeService& service);

// YAML as JSON text, for the kinds of YAML that are read here: kubeconfig files and Kubernetes'
// objects. What is neither true, false nor null stays text, also numbers. JSON is YAML, too.
// Threads: pure functions. Errors: kMalformed, with `what` and the line.

Result<std::string> YamlToJson(const std::string& yaml, const std::string& what);

// The documents of a stream, between lines of "---".
Result<std::vector<std::string>> YamlDocumentsToJson(const std::string& yaml, const std::string& what);

}  // namespace railhead
