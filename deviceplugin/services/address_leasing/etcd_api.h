// Calls of etcd's v3 API over its JSON gateway, with who we are.
//
// With a user, a token is asked for at the first call and again when a member does not know it
// (any more): members say so before they do anything, so that such a call is made once more.
// The gateway knows no users by client certificate: that is etcd's own rule.
// Source: etcd 3.4's rpc.proto and its grpc-gateway.
// Threads: one at a time; sent() from any.
// Errors: those of HttpClient; kPermission, kInvalid with what etcd said; kMalformed.
#pragma once

#include <cstdint>
#include <string>

#include "deviceplugin/services/address_leasing/etcd_config.h"
#include "deviceplugin/support/http/http_client.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/json_reader.h"

namespace railhead {

class EtcdApi {
 public:
  // Files are taken below `root`.
  EtcdApi(const Root& root, const EtcdConfig& config);

  // POST of `body` to `path` ("/v3/kv/range"). `repeatable`: it changes nothing.
  Result<JsonDocument> Call(const std::string& path, const std::string& body, bool repeatable);
  [[nodiscard]] std::uint64_t sent() const { return client_.sent(); }

 private:
  Result<void> Authenticate();

  HttpClient client_;
  const std::string user_file_;
  const std::string password_file_;
  std::string token_;
};

}  // namespace railhead
