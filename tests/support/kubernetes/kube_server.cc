#include "tests/support/kubernetes/kube_server.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kClaims = "/apis/railhead.io/v1alpha1/nodeindices";
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

KubeServer::KubeServer(Kind kind, StandInOptions options) : options_(std::move(options)) {
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
  settings.endpoint = access.endpoint;
  settings.tls = access.tls;
  settings.timeout = std::chrono::seconds(60);
  admin_ = std::make_unique<http::HttpClient>(settings);
  AwaitReady();
  if (kind == Kind::kReal) ApplyManifest();
}

void KubeServer::StartStandIn() {
  const std::string ready = files_.directory() + "/port";
  const std::string certificates = certificates_.directory();
  std::vector<std::string> words = {"/usr/bin/python3",
                                    KUBE_STANDIN,
                                    "--port-file",
                                    ready,
                                    "--certificate",
                                    certificates + "/server.pem",
                                    "--key",
                                    certificates + "/server-key.pem",
                                    "--authority",
                                    certificates + "/ca.pem",
                                    "--tokens",
                                    files_.directory() + "/tokens.csv",
                                    "--address",
                                    options_.address,
                                    "--port",
                                    std::to_string(port_)};
  if (options_.keeps_state) words.insert(words.end(), {"--state", files_.directory() + "/state.json"});
  if (!RemoveFile(ready)) throw std::runtime_error("cannot remove " + ready);
  process_ = StartServer(std::move(words), files_.directory() + "/standin.log", options_.in_child);
  if (!Eventually([&] { return Exists(ready) || process_->HasEnded(); }) || !Exists(ready)) {
    throw std::runtime_error("the stand-in does not serve: " + process_->out());
  }
  port_ = std::stoi(ReadFileAt(ready));
}

void KubeServer::Start() {
  StartStandIn();
  AwaitReady();
}

void KubeServer::StartReal() {
  const std::string programs = std::getenv("KUBEBUILDER_ASSETS");
  const std::string client = "http://127.0.0.1:" + std::to_string(etcd_port_.emplace().number());
  const std::string peer = "http://127.0.0.1:" + std::to_string(etcd_peer_port_.emplace().number());
  etcd_ = StartServer(
      {programs + "/etcd", "--data-dir=" + files_.directory() + "/etcd", "--listen-client-urls=" + client,
       "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
       "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer},
      files_.directory() + "/etcd.log");
  port_ = reserved_.emplace().number();
  const std::string certificates = certificates_.directory();
  process_ = StartServer(
      {RealServer(), "--etcd-servers=" + client, "--bind-address=127.0.0.1",
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
  const std::string directory = std::string(SOURCE_DIR) + "/manifests/components/node-index/";
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
  const http::HttpCall call{"GET", kClaims, {}, "", true};
  if (!Eventually([&] {
        auto answer = admin_->Send(call);
        return answer && answer->status == 200;
      })) {
    throw std::runtime_error("nodeindices are not served: " + Log(*process_));
  }
}

KubeAccess KubeServer::AdminAccess() const {
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint("https://" + options_.address + ":" + std::to_string(port_));
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
  Admin("DELETE", kClaims);
}

std::string KubeServer::Kubeconfig() const {
  const KubeAccess access = Access();
  const Json cluster = {{"server", access.endpoint.ToString()},
                        {"certificate-authority", access.tls.authorities.file}};
  const Json user = {{"tokenFile", access.token_file}};
  const Json context = {{"cluster", "k"}, {"user", "u"}};
  const Json config = {{"current-context", "c"},
                       {"contexts", Json::array({Json{{"name", "c"}, {"context", context}}})},
                       {"clusters", Json::array({Json{{"name", "k"}, {"cluster", cluster}}})},
                       {"users", Json::array({Json{{"name", "u"}, {"user", user}}})}};
  return config.dump();
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
