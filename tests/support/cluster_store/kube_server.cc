#include "tests/support/cluster_store/kube_server.h"

#include <cstdlib>
#include <stdexcept>

#include "netns/base/files.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

constexpr const char* kRailheadd = "system:serviceaccount:railhead:railheadd";

std::string Log(const Process& process) {
  const std::string log = process.out();
  return log.substr(log.size() > 4000 ? log.size() - 4000 : 0);
}

}  // namespace

std::string KubeServer::RealServer() {
  const char* directory = std::getenv("KUBEBUILDER_ASSETS");
  if (directory == nullptr) return {};
  std::string path = std::string(directory) + "/kube-apiserver";
  return Exists(path) ? path : "";
}

KubeServer::KubeServer(Kind kind) {
  WriteFileAt(files_.directory() + "/token", "token-of-railheadd\n");
  WriteFileAt(files_.directory() + "/tokens.csv",
              std::string("token-of-railheadd,") + kRailheadd + ",1\ntoken-of-nobody,nobody,2\n");
  if (kind == Kind::kReal) {
    StartReal();
  } else {
    StartStandIn();
  }
  http::HttpClientSettings settings;
  const KubeAccess access = AdminAccess();
  settings.endpoints = {access.endpoint};
  settings.tls = access.tls;
  settings.timeout = std::chrono::seconds(60);
  admin_ = std::make_unique<http::HttpClient>(settings);
  AwaitReady();
  if (kind == Kind::kReal) ApplyManifest();
}

void KubeServer::StartStandIn() {
  const std::string ready = files_.directory() + "/port";
  const std::string certificates = certificates_.directory();
  process_ =
      StartServer({"/usr/bin/python3", KUBE_STANDIN, "--port-file", ready, "--certificate",
                   certificates + "/server.pem", "--key", certificates + "/server-key.pem", "--authority",
                   certificates + "/ca.pem", "--tokens", files_.directory() + "/tokens.csv"},
                  files_.directory() + "/standin.log");
  if (!Eventually([&] { return Exists(ready) || process_->HasEnded(); }) || !Exists(ready)) {
    throw std::runtime_error("the stand-in does not serve: " + process_->out());
  }
  port_ = std::stoi(ReadFileAt(ready));
}

void KubeServer::StartReal() {
  const std::string etcd_directory = files_.directory() + "/etcd";
  if (!MakeDirectories(etcd_directory)) throw std::runtime_error("no " + etcd_directory);
  etcd_ = std::make_unique<EtcdCluster>(etcd_directory, EtcdOptions{});
  port_ = reserved_.emplace().number();
  const std::string certificates = certificates_.directory();
  process_ = StartServer(
      {RealServer(), "--etcd-servers=" + etcd_->Config().endpoints[0].ToString(), "--bind-address=127.0.0.1",
       "--secure-port=" + std::to_string(port_), "--tls-cert-file=" + certificates + "/server.pem",
       "--tls-private-key-file=" + certificates + "/server-key.pem",
       "--client-ca-file=" + certificates + "/ca.pem",
       "--token-auth-file=" + files_.directory() + "/tokens.csv", "--authorization-mode=RBAC",
       "--cert-dir=" + files_.directory(), "--service-account-issuer=https://localhost",
       "--service-account-key-file=" + certificates + "/server.pem",
       "--service-account-signing-key-file=" + certificates + "/server-key.pem",
       "--service-cluster-ip-range=10.0.0.0/24"},
      files_.directory() + "/kube-apiserver.log");
}

void KubeServer::AwaitReady() {
  const http::HttpCall call{"GET", "/readyz", {}, "", true};
  const bool ready = Eventually([&] {
    auto answer = admin_->Send(call);
    return (answer && answer->status == 200) || process_->HasEnded();
  });
  if (!ready || process_->HasEnded())
    throw std::runtime_error("the API server does not serve: " + Log(*process_));
}

void KubeServer::ApplyManifest() {
  const std::string directory = std::string(SOURCE_DIR) + "/manifests/components/kubernetes-store/";
  const std::string separator = "\n---\n";
  const std::string all =
      ReadFileAt(directory + "crds.yaml") + separator + ReadFileAt(directory + "role.yaml");
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(separator, at), all.size());
    const std::string one = all.substr(at, end - at);
    at = end + separator.size();
    const bool is_resource = one.find("kind: CustomResourceDefinition") != std::string::npos;
    const bool is_role = one.find("kind: ClusterRole\n") != std::string::npos;
    Admin("POST",
          is_resource ? "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
                      : std::string("/apis/rbac.authorization.k8s.io/v1/") +
                            (is_role ? "clusterroles" : "clusterrolebindings"),
          one, "application/yaml");
  }
  for (const char* resource : {"addressblocks", "nodeaddresses", "nodeindices"}) {
    const http::HttpCall call{"GET", std::string("/apis/railhead.io/v1alpha1/") + resource, {}, "", true};
    if (!Eventually([&] {
          auto answer = admin_->Send(call);
          return answer && answer->status == 200;
        })) {
      throw std::runtime_error(std::string(resource) + " are not served: " + Log(*process_));
    }
  }
}

KubeAccess KubeServer::AdminAccess() const {
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint("https://127.0.0.1:" + std::to_string(port_));
  access.tls.authorities.file = certificates_.Path("ca.pem");
  access.tls.certificate.file = certificates_.Path("admin.pem");
  access.tls.key.file = certificates_.Path("admin-key.pem");
  return access;
}

KubeAccess KubeServer::Access() const {
  KubeAccess access = AdminAccess();
  access.tls.certificate = access.tls.key = {};
  access.token_file = files_.directory() + "/token";
  return access;
}

KubeAccess KubeServer::UnprivilegedAccess() const {
  KubeAccess access = Access();
  access.token_file.clear();
  access.token = "token-of-nobody";
  return access;
}

void KubeServer::Clear() {
  for (const char* resource : {"addressblocks", "nodeaddresses", "nodeindices"}) {
    Admin("DELETE", std::string("/apis/railhead.io/v1alpha1/") + resource);
  }
}

http::HttpAnswer KubeServer::Admin(const std::string& method, const std::string& target,
                                   const std::string& body, const std::string& type) {
  http::HttpCall call{method, target, {}, body, method == "GET"};
  if (!body.empty()) call.headers = {{"Content-Type", type}};
  auto answer = admin_->Send(call);
  if (!answer) throw std::runtime_error(Describe(answer.error()));
  if (answer->status / 100 != 2) {
    throw std::runtime_error(method + " " + target + ": " + std::to_string(answer->status) + " " +
                             answer->body);
  }
  return *answer;
}

}  // namespace railhead::testing
