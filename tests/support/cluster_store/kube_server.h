// The Kubernetes API for tests: kube_standin.py, and a real kube-apiserver on an etcd if KUBEBUILDER_ASSETS
// names its directory. Both use TLS, have our manifest applied, and know the same users.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "deviceplugin/support/http/http_client.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "tests/support/cluster_store/certificates.h"
#include "tests/support/cluster_store/etcd_cluster.h"
#include "tests/support/cluster_store/server_process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {

class KubeServer {
 public:
  enum class Kind { kStandIn, kReal };

  // The path of kube-apiserver; "": it is not installed.
  static std::string RealServer();

  // The server serves when this returns.
  explicit KubeServer(Kind kind);

  // railheadd's service account, by a token file below root().
  [[nodiscard]] KubeAccess Access() const;
  // A user without any permission.
  [[nodiscard]] KubeAccess UnprivilegedAccess() const;
  // The cluster's administrator, by a client certificate.
  [[nodiscard]] KubeAccess AdminAccess() const;

  // Removes all records.
  void Clear();
  // A request as the administrator; its status must be 2xx.
  http::HttpAnswer Admin(const std::string& method, const std::string& target, const std::string& body = "",
                         const std::string& type = "application/json");
  [[nodiscard]] const Certificates& certificates() const { return certificates_; }
  [[nodiscard]] const TempRoot& files() const { return files_; }

 private:
  void StartStandIn();
  void StartReal();
  void ApplyManifest();
  void AwaitReady();

  TempRoot files_;
  Certificates certificates_;
  int port_ = 0;
  std::optional<ReservedPort> reserved_;  // the real server's; the stand-in chooses one itself
  std::unique_ptr<EtcdCluster> etcd_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<http::HttpClient> admin_;
};

}  // namespace railhead::testing
