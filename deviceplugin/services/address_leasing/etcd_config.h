// How etcd is reached: the object `etcd` of a cluster store's configuration.
//
//   {"endpoints": ["https://etcd0:2379"], "prefix": "/railhead", "caFile": PATH,
//    "certFile": PATH, "keyFile": PATH, "userFile": PATH, "passwordFile": PATH,
//    "timeoutSeconds": 5}
//
// Only `endpoints` is required; with https:// `caFile` too. Files are read when they are used,
// so that new ones count; of userFile and passwordFile the first line.
// Threads: values. Errors stick to the reader, with their JSON pointers.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "deviceplugin/support/http/connection.h"
#include "netns/json/json_reader.h"

namespace railhead {

struct EtcdConfig {
  std::vector<HttpEndpoint> endpoints;
  std::string prefix = "/railhead";  // before all keys; without a '/' at its end
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string user_file;
  std::string password_file;
  std::chrono::seconds timeout{5};  // of one call, all endpoints together
};

EtcdConfig ReadEtcdConfig(JsonReader& reader);

}  // namespace railhead
