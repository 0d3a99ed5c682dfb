// etcd for tests: one member or several, on loopback, with or without TLS and users.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/services/address_leasing/etcd_store.h"
#include "tests/support/cluster_store/server_process.h"

namespace railhead::testing {

struct EtcdOptions {
  int members = 1;
  bool tls = false;
  bool users = false;              // railhead/secret may use the prefix /railhead/ only
  std::string certificates;        // directory; with tls
  std::vector<std::string> hosts;  // of the members; default: 127.0.0.1
  // Runs in member N's process before etcd starts.
  std::function<void(int)> in_child;
};

class EtcdCluster {
 public:
  // `directory` must exist; it keeps all files. etcd serves when this returns.
  EtcdCluster(std::string directory, EtcdOptions options);

  // The settings for all members, with the user's files when there are users.
  [[nodiscard]] address_leasing::EtcdConfig Config() const;
  [[nodiscard]] address_leasing::EtcdConfig RootConfig() const;
  [[nodiscard]] address_leasing::EtcdConfig ConfigOf(int member) const;

  void Signal(int member, int signal) { members_.at(static_cast<std::size_t>(member))->Signal(signal); }
  void Kill(int member) { members_.at(static_cast<std::size_t>(member))->Kill(); }
  void Start(int member);
  // Waits until every member answers linearizable reads.
  void AwaitAll() const;
  [[nodiscard]] std::string Log(int member) const;

  // A call as root; fails the test when it is refused.
  void Call(const std::string& path, const std::string& body) const;

 private:
  [[nodiscard]] std::string UrlOf(const ReservedPort& port, int member) const;
  void AddUsers();

  const std::string directory_;
  const EtcdOptions options_;
  bool has_users_ = false;
  std::vector<ReservedPort> client_ports_;
  std::vector<ReservedPort> peer_ports_;
  std::vector<std::unique_ptr<Process>> members_;
};

}  // namespace railhead::testing
