#include "deviceplugin/support/kubernetes/kube_access.h"

#include <optional>
#include <utility>
#include <vector>

#include "deviceplugin/support/http/base64.h"
#include "deviceplugin/support/kubernetes/yaml.h"
#include "netns/base/root_file.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

Result<KubeAccess> InPod(const Root& root, const KubeService& service) {
  if (service.host.empty() || service.port.empty()) {
    return Fail(ErrorCode::kInvalid,
                "reaching the Kubernetes API: there is neither a kubeconfig in the configuration nor "
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in the environment",
                "outside of a pod, name a kubeconfig file");
  }
  const bool v6 = service.host.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + service.host + "]" : service.host;
  KubeAccess access;
  access.endpoint = RH_TRY(http::ParseHttpEndpoint("https://" + host + ":" + service.port));
  access.tls.authorities.file = root.Path(std::string(kServiceAccount) + "ca.crt");
  access.token_file = root.Path(std::string(kServiceAccount) + "token");
  return access;
}

// An entry in kubectl's form: "name:" and the object beside it.
std::optional<JsonReader> Named(std::vector<JsonReader> list, const std::string& name,
                                const std::string& key) {
  for (JsonReader& one : list) {
    if (one.String("name") == name) return one.Object(key);
  }
  return std::nullopt;
}

class KubeconfigFile {
 public:
  KubeconfigFile(const Root& root, const std::string& path)
      : root_(root), directory_(path.substr(0, path.rfind('/') + 1)) {}

  void ReadCluster(JsonReader& cluster, KubeAccess& access) const {
    const std::string server = cluster.RequiredString("server");
    if (auto endpoint = http::ParseHttpEndpoint(server)) {
      access.endpoint = *endpoint;
    } else {
      cluster.Fail("server", endpoint.error().message, endpoint.error().hint);
    }
    access.tls.server_name = cluster.String("tls-server-name").value_or("");
    access.tls.authorities = ReadPem(cluster, "certificate-authority");
    if (cluster.Bool("insecure-skip-tls-verify").value_or(false)) {
      cluster.Fail("insecure-skip-tls-verify", "is refused: any host that answers could hand out addresses",
                   "give the server's certificate-authority");
    }
    Refuse(cluster, "proxy-url", "proxies are not used", "name a server that is reached directly");
  }

  void ReadUser(JsonReader& user, KubeAccess& access) const {
    access.tls.certificate = ReadPem(user, "client-certificate");
    access.tls.key = ReadPem(user, "client-key");
    access.token = user.String("token").value_or("");
    access.token_file = PathOf(user.String("tokenFile").value_or(""));
    const std::string way_out = "make a kubeconfig with a client certificate, a token or a tokenFile";
    Refuse(user, "exec", "programs that fetch credentials are not run", way_out);
    Refuse(user, "auth-provider", "providers of credentials are not known here", way_out);
    Refuse(user, "username", "the Kubernetes API no longer accepts passwords", way_out);
    Refuse(user, "as", "being someone else is not known here", way_out);
  }

 private:
  static void Refuse(JsonReader& reader, const std::string& key, const std::string& why,
                     const std::string& hint) {
    if (reader.Has(key)) reader.Fail(key, why, hint);
  }

  // As kubectl does: from the kubeconfig's directory.
  [[nodiscard]] std::string PathOf(const std::string& path) const {
    if (path.empty()) return path;
    return root_.Path(path[0] == '/' ? path : directory_ + path);
  }

  http::Pem ReadPem(JsonReader& reader, const std::string& key) const {
    http::Pem pem;
    if (const auto data = reader.String(key + "-data"); data && !data->empty()) {
      auto text = http::DecodeBase64(*data);
      if (!text) reader.Fail(key + "-data", "is not base64");
      pem.text = std::move(text).value_or("");
      return pem;
    }
    pem.file = PathOf(reader.String(key).value_or(""));
    return pem;
  }

  const Root& root_;
  const std::string directory_;
};

Result<KubeAccess> FromKubeconfig(const Root& root, const KubeConfig& config) {
  const std::string path = root.Path(config.kubeconfig);
  const auto text = RH_TRY_WRAP(ReadVolumeFile(path), "reading the kubeconfig");
  if (!text) {
    return Fail(ErrorCode::kInvalid, "reading the kubeconfig " + path + ": no such file",
                "put it there, or name another one");
  }
  const std::string json = RH_TRY(YamlToJson(*text, path));
  const auto document = RH_TRY(JsonDocument::Parse(json, path));
  JsonReader reader = document.Root();
  const std::string current = reader.String("current-context").value_or("");
  const std::string name = config.context.empty() ? current : config.context;
  auto context = Named(reader.Objects("contexts"), name, "context");
  if (!context) {
    reader.Fail("contexts", "has no context '" + name + "'",
                "name one that is there, as current-context or context");
    return Fail(reader.status().error());
  }
  const KubeconfigFile file(root, config.kubeconfig);
  KubeAccess access;
  const std::string cluster_name = context->RequiredString("cluster");
  auto cluster = Named(reader.Objects("clusters"), cluster_name, "cluster");
  if (!cluster) {
    context->Fail("cluster", "cluster '" + cluster_name + "' does not exist");
  } else {
    file.ReadCluster(*cluster, access);
  }
  if (const auto user_name = context->String("user")) {
    auto user = Named(reader.Objects("users"), *user_name, "user");
    if (!user) {
      context->Fail("user", "user '" + *user_name + "' does not exist");
    } else {
      file.ReadUser(*user, access);
    }
  }
  RH_TRY(reader.status());
  return access;
}

}  // namespace

void Shape<KubeConfig>::Check(const KubeConfig& config, const record::Complain& complain) {
  if (!config.kubeconfig.empty() && config.kubeconfig[0] != '/')
    complain("kubeconfig", "'" + config.kubeconfig + "' is not an absolute path",
             "for example /etc/kube/config");
  if (!config.context.empty() && config.kubeconfig.empty())
    complain("context", "is of use with a kubeconfig only", "name the kubeconfig, or leave the context out");
}

Result<KubeAccess> FindKubeAccess(const Root& root, const KubeConfig& config, const KubeService& service) {
  return config.kubeconfig.empty() ? InPod(root, service) : FromKubeconfig(root, config);
}

}  // namespace railhead
