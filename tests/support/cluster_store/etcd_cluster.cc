#include "tests/support/cluster_store/etcd_cluster.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "deviceplugin/services/address_leasing/etcd_store.h"
#include "deviceplugin/support/http/http_message.h"
#include "netns/base/files.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

std::string Name(int member) {
  return "m" + std::to_string(member);
}

}  // namespace

EtcdCluster::EtcdCluster(std::string directory, EtcdOptions options)
    : directory_(std::move(directory)), options_(std::move(options)) {
  for (int i = 0; i < options_.members; ++i) {
    client_ports_.emplace_back();
    peer_ports_.emplace_back();
    members_.push_back(nullptr);
  }
  WriteFileAt(directory_ + "/user", "railhead\n");
  WriteFileAt(directory_ + "/password", "secret\n");
  WriteFileAt(directory_ + "/root-user", "root\n");
  WriteFileAt(directory_ + "/root-password", "root-secret\n");
  for (int i = 0; i < options_.members; ++i) Start(i);
  AwaitAll();
  if (options_.users) AddUsers();
}

std::string EtcdCluster::UrlOf(const ReservedPort& port, int member) const {
  const std::string host =
      options_.hosts.empty() ? "127.0.0.1" : options_.hosts.at(static_cast<std::size_t>(member));
  return (options_.tls ? "https://" : "http://") + host + ":" + std::to_string(port.number());
}

void EtcdCluster::Start(int member) {
  std::string cluster;
  for (int i = 0; i < options_.members; ++i) {
    cluster += (i == 0 ? "" : ",") + Name(i) + "=" + UrlOf(peer_ports_[static_cast<std::size_t>(i)], i);
  }
  const std::string client = UrlOf(client_ports_[static_cast<std::size_t>(member)], member);
  const std::string peer = UrlOf(peer_ports_[static_cast<std::size_t>(member)], member);
  std::vector<std::string> words = {
      "etcd", "--name=" + Name(member), "--data-dir=" + directory_ + "/" + Name(member),
      "--listen-client-urls=" + client, "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
      "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + cluster,
      // Without this, a dozen logins on a busy machine would take longer than the clients wait.
      "--bcrypt-cost=4", "--logger=zap", "--log-level=warn"};
  if (options_.tls) {
    const std::string& at = options_.certificates;
    for (const char* side : {"--", "--peer-"}) {
      words.push_back(std::string(side) + "cert-file=" + at + "/server.pem");
      words.push_back(std::string(side) + "key-file=" + at + "/server-key.pem");
      words.push_back(std::string(side) + "trusted-ca-file=" + at + "/ca.pem");
      words.push_back(std::string(side) + "client-cert-auth=true");
    }
  }
  members_[static_cast<std::size_t>(member)] =
      StartServer(words, directory_ + "/" + Name(member) + ".log", [this, member] {
        if (options_.in_child) options_.in_child(member);
      });
}

address_leasing::EtcdConfig EtcdCluster::Config() const {
  address_leasing::EtcdConfig config;
  for (int i = 0; i < options_.members; ++i) {
    config.endpoints.push_back(
        *http::ParseHttpEndpoint(UrlOf(client_ports_[static_cast<std::size_t>(i)], i)));
  }
  if (options_.tls) {
    config.ca_file = options_.certificates + "/ca.pem";
    config.cert_file = options_.certificates + "/client.pem";
    config.key_file = options_.certificates + "/client-key.pem";
  }
  if (has_users_) {
    config.user_file = directory_ + "/user";
    config.password_file = directory_ + "/password";
  }
  return config;
}

address_leasing::EtcdConfig EtcdCluster::RootConfig() const {
  address_leasing::EtcdConfig config = Config();
  if (has_users_) {
    config.user_file = directory_ + "/root-user";
    config.password_file = directory_ + "/root-password";
  }
  return config;
}

address_leasing::EtcdConfig EtcdCluster::ConfigOf(int member) const {
  address_leasing::EtcdConfig config = Config();
  config.endpoints = {config.endpoints.at(static_cast<std::size_t>(member))};
  return config;
}

void EtcdCluster::AwaitAll() const {
  for (int i = 0; i < options_.members; ++i) {
    address_leasing::EtcdConfig config = RootConfig();
    config.endpoints = {config.endpoints.at(static_cast<std::size_t>(i))};
    address_leasing::EtcdApi api(Root(), config);
    const std::string read = Json{{"key", http::EncodeBase64("/railhead/")}}.dump();
    if (!Eventually([&] { return api.Call("/v3/kv/range", read, true).has_value(); })) {
      throw std::runtime_error("etcd does not serve: " + Log(i));
    }
  }
}

std::string EtcdCluster::Log(int member) const {
  return ReadFileAt(directory_ + "/" + Name(member) + ".log");
}

void EtcdCluster::Call(const std::string& path, const std::string& body) const {
  address_leasing::EtcdApi api(Root(), RootConfig());
  auto done = api.Call(path, body, false);
  if (!done) throw std::runtime_error(Describe(done.error()));
}

void EtcdCluster::AddUsers() {
  const Json permission = {{"permType", "READWRITE"},
                           {"key", http::EncodeBase64("/railhead/")},
                           {"range_end", http::EncodeBase64("/railhead0")}};
  Call("/v3/auth/user/add", Json{{"name", "root"}, {"password", "root-secret"}}.dump());
  Call("/v3/auth/role/add", Json{{"name", "root"}}.dump());
  Call("/v3/auth/user/grant", Json{{"user", "root"}, {"role", "root"}}.dump());
  Call("/v3/auth/user/add", Json{{"name", "railhead"}, {"password", "secret"}}.dump());
  Call("/v3/auth/role/add", Json{{"name", "railhead"}}.dump());
  Call("/v3/auth/role/grant", Json{{"name", "railhead"}, {"perm", permission}}.dump());
  Call("/v3/auth/user/grant", Json{{"user", "railhead"}, {"role", "railhead"}}.dump());
  Call("/v3/auth/enable", "{}");
  has_users_ = true;
}

}  // namespace railhead::testing
