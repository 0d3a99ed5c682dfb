// The API servers that the tests of a program share: each is started once.
// Threads: one.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "tests/support/kubernetes/kube_server.h"

namespace railhead::testing {

inline KubeServer& SharedKubeServer(KubeServer::Kind kind) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  static KubeServer standin(KubeServer::Kind::kStandIn);
  if (kind == KubeServer::Kind::kStandIn) return standin;
  static KubeServer real(KubeServer::Kind::kReal);
  return real;
}

// The stand-in, and a real kube-apiserver if there is one.
inline std::vector<KubeServer::Kind> KubeServerKinds() {
  std::vector<KubeServer::Kind> kinds = {KubeServer::Kind::kStandIn};
  if (!KubeServer::RealServer().empty()) kinds.push_back(KubeServer::Kind::kReal);
  return kinds;
}

inline std::string NameOfKubeServer(KubeServer::Kind kind) {
  return kind == KubeServer::Kind::kReal ? "KubeApiServer" : "StandIn";
}

}  // namespace railhead::testing
