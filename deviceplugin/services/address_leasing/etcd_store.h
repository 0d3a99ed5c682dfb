// Calls etcd's v3 API over its JSON gateway, and authenticates there.
//
// With a user, the first call asks for a token. A call asks again when a member no longer knows the token.
// The member reports that before it changes anything, so the call is then repeated once. The gateway does not
// accept client certificates as users: that is etcd's own rule.
// Source: etcd 3.4's rpc.proto and its grpc-gateway.
// Threads: one at a time; sent() from any.
// Errors: those of HttpClient; kPermission, kInvalid with etcd's message; kMalformed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/support/http/connection.h"
#include "deviceplugin/support/http/http_client.h"
#include "ipam/lease/cluster_store.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"
#include "netns/json/record_forms.h"

namespace railhead::address_leasing {

// How etcd is reached: the object `etcd` of a cluster store's configuration.
//
//   {"endpoints": ["https://etcd0:2379"], "prefix": "/railhead", "caFile": PATH,
//    "certFile": PATH, "keyFile": PATH, "userFile": PATH, "passwordFile": PATH,
//    "timeoutSeconds": 5}
//
// Only `endpoints` is required; with https:// `caFile` too. Each use reads the files again, so new ones take
// effect. Of userFile and passwordFile only the first line counts.
// Threads: values.

struct EtcdConfig {
  std::vector<http::HttpEndpoint> endpoints;
  std::string prefix = "/railhead";  // before all keys; without a '/' at its end
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string user_file;
  std::string password_file;
  std::chrono::seconds timeout{5};  // of one call, all endpoints together
};

}  // namespace railhead::address_leasing

template <>
struct railhead::TextForm<railhead::http::HttpEndpoint> {
  static std::string Write(const http::HttpEndpoint& endpoint) { return endpoint.ToString(); }
  static Result<http::HttpEndpoint> Read(const std::string& url) { return http::ParseHttpEndpoint(url); }
};

template <>
struct railhead::Shape<railhead::address_leasing::EtcdConfig> {
  using T = address_leasing::EtcdConfig;
  static void List(auto& f) {
    f("endpoints", &T::endpoints,
      {.need = Need::kPresent, .filled = true, .hint = R"(list the members: ["https://HOST:2379"])"});
    f("prefix", &T::prefix);
    f("caFile", &T::ca_file);
    f("certFile", &T::cert_file);
    f("keyFile", &T::key_file);
    f("userFile", &T::user_file);
    f("passwordFile", &T::password_file);
    f("timeoutSeconds", &T::timeout, {.min = 1, .max = 60});
  }
  static void Complete(T& config);
  static void Check(const T& config, const record::Complain& complain);
};

namespace railhead::address_leasing {

class EtcdApi {
 public:
  // Files are taken below `root`.
  EtcdApi(const Root& root, const EtcdConfig& config);

  // POST of `body` to `path` ("/v3/kv/range"). `repeatable`: it changes nothing.
  Result<JsonDocument> Call(const std::string& path, const std::string& body, bool repeatable);
  [[nodiscard]] std::uint64_t sent() const { return client_.sent(); }

 private:
  Result<void> Authenticate();

  http::HttpClient client_;
  const std::string user_file_;
  const std::string password_file_;
  std::string token_;
};

// ClusterStore on etcd v3.
//
// Keys: PREFIX/v1/blocks/POOL/INDEX, where POOL is the subnet with '_' for '/' and INDEX has 20
// digits, so that bytes sort as numbers; PREFIX/v1/nodes/NODE. Values are the entries' own.
// A revision is the key's mod_revision. Reads are linearizable (etcd's default); every change is
// one transaction with one comparison.
// Threads and errors: as ClusterStore says.

std::unique_ptr<ipam::ClusterStore> MakeEtcdStore(const Root& root, const EtcdConfig& config);

// The key's bytes without the prefix, "/v1/...". Errors: kInvalid for names that cannot be part of a key.
Result<std::string> EtcdKeyOf(const ipam::LeaseKey& key);

}  // namespace railhead::address_leasing
