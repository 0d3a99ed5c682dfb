#include "deviceplugin/services/address_leasing/etcd_config.h"

#include <algorithm>

namespace railhead {
namespace {

constexpr int kMostSeconds = 60;

std::string ReadPath(JsonReader& reader, const std::string& key) {
  std::string path = reader.String(key).value_or("");
  if (!path.empty() && path[0] != '/') reader.Fail(key, "'" + path + "' is no absolute path");
  return path;
}

void ReadEndpoints(JsonReader& reader, EtcdConfig& config) {
  const auto urls = reader.Strings("endpoints").value_or(std::vector<std::string>{});
  if (urls.empty()) {
    reader.Fail("endpoints", "is required and must not be empty",
                "list the members: [\"https://HOST:2379\"]");
  }
  for (const std::string& url : urls) {
    auto endpoint = ParseHttpEndpoint(url);
    if (!endpoint) {
      reader.Fail("endpoints", endpoint.error().message, endpoint.error().hint);
      return;
    }
    config.endpoints.push_back(std::move(*endpoint));
  }
}

}  // namespace

EtcdConfig ReadEtcdConfig(JsonReader& reader) {
  EtcdConfig config;
  ReadEndpoints(reader, config);
  config.prefix = reader.String("prefix").value_or(config.prefix);
  while (config.prefix.ends_with('/')) config.prefix.pop_back();
  if (config.prefix.find('\0') != std::string::npos) reader.Fail("prefix", "has a NUL in it");
  config.ca_file = ReadPath(reader, "caFile");
  config.cert_file = ReadPath(reader, "certFile");
  config.key_file = ReadPath(reader, "keyFile");
  config.user_file = ReadPath(reader, "userFile");
  config.password_file = ReadPath(reader, "passwordFile");
  if (const auto seconds = reader.Int("timeoutSeconds", 1, kMostSeconds)) {
    config.timeout = std::chrono::seconds(*seconds);
  }
  const bool tls = std::any_of(config.endpoints.begin(), config.endpoints.end(),
                               [](const HttpEndpoint& endpoint) { return endpoint.tls; });
  if (tls && config.ca_file.empty()) {
    reader.Fail("caFile", "is required with https://",
                "name the file of the authority that signed etcd's certificates");
  }
  if (config.cert_file.empty() != config.key_file.empty()) {
    reader.Fail(config.cert_file.empty() ? "certFile" : "keyFile",
                "is missing: certFile and keyFile go together");
  }
  if (config.user_file.empty() != config.password_file.empty()) {
    reader.Fail(config.user_file.empty() ? "userFile" : "passwordFile",
                "is missing: userFile and passwordFile go together");
  }
  reader.Close();
  return config;
}

}  // namespace railhead
