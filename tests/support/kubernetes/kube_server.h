// The Kubernetes API for tests: kube_standin.py, and a real kube-apiserver if KUBEBUILDER_ASSETS names the
// directory that has it and its etcd. Both use TLS, have our manifest applied, and know the same users.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "deviceplugin/support/http/http_client.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/kubernetes/certificates.h"
#include "tests/support/kubernetes/server_process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {

struct StandInOptions {
  std::string address = "127.0.0.1";
  bool keeps_state = false;  // over Kill() and Start()
  // Runs in the stand-in's process before it starts; it may only make system calls.
  std::function<void()> in_child = {};
};

class KubeServer {
 public:
  enum class Kind { kStandIn, kReal };

  // The path of kube-apiserver; "": it is not installed.
  static std::string RealServer();

  // The server serves when this returns.
  explicit KubeServer(Kind kind, StandInOptions options = {});

  // railheadd's service account, by a token file below root().
  [[nodiscard]] KubeAccess Access() const;
  // A user without any permission.
  [[nodiscard]] KubeAccess UnprivilegedAccess() const;
  // The cluster's administrator, by a client certificate.
  [[nodiscard]] KubeAccess AdminAccess() const;

  // A kubeconfig for railheadd's service account, as JSON.
  [[nodiscard]] std::string Kubeconfig() const;

  // Of the stand-in. It serves at the same port again when Start() returns.
  void Kill() { process_->Kill(); }
  void Start();
  void Signal(int signal) const { process_->Signal(signal); }

  // Removes all claims.
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

  const StandInOptions options_;
  TempRoot files_;
  Certificates certificates_;
  int port_ = 0;
  std::optional<ReservedPort> reserved_;  // the real server's; the stand-in chooses one itself
  std::optional<ReservedPort> etcd_port_;
  std::optional<ReservedPort> etcd_peer_port_;
  std::unique_ptr<Process> etcd_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<http::HttpClient> admin_;
};

}  // namespace railhead::testing
