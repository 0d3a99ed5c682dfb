#include "deviceplugin/services/address_leasing/etcd_api.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "netns/base/files.h"

namespace railhead {
namespace {

using Json = nlohmann::json;

// Source: google.golang.org/grpc/codes.
enum GrpcCode : std::int64_t {
  kGrpcInvalidArgument = 3,
  kGrpcNotFound = 5,
  kGrpcPermissionDenied = 7,
  kGrpcFailedPrecondition = 9,
  kGrpcUnimplemented = 12,
  kGrpcUnauthenticated = 16,
};

constexpr std::int64_t kNoCode = -1;
constexpr std::size_t kMostShown = 200;

struct Refusal {
  std::int64_t code = kNoCode;
  std::string text;
};

Refusal ReadRefusal(const HttpAnswer& answer) {
  Refusal refusal;
  if (auto document = JsonDocument::Parse(answer.body, answer.from)) {
    JsonReader reader = document->Root();
    refusal.code = reader.Int("code", 0, INT32_MAX).value_or(kNoCode);
    refusal.text = reader.String("error").value_or(reader.String("message").value_or(""));
  }
  if (refusal.text.empty()) {
    refusal.text = "HTTP status " + std::to_string(answer.status);
    const std::string line = answer.body.substr(0, std::min(answer.body.find_first_of("\r\n"), kMostShown));
    if (!line.empty()) refusal.text += ": " + line;
  }
  return refusal;
}

// The token is not known, or older than the latest change of users and roles. Members find both
// out before they change anything.
bool AsksForToken(const Refusal& refusal) {
  return refusal.code == kGrpcUnauthenticated ||
         refusal.text.find("revision of auth store is old") != std::string::npos;
}

bool IsAboutUser(const Refusal& refusal) {
  return refusal.code == kGrpcUnauthenticated ||
         refusal.text.find("user name is empty") != std::string::npos ||
         refusal.text.find("authentication failed") != std::string::npos ||
         refusal.text.find("invalid auth token") != std::string::npos;
}

Error ErrorOf(const HttpAnswer& answer, const std::string& path) {
  const Refusal refusal = ReadRefusal(answer);
  Error error{ErrorCode::kUnavailable, "etcd at " + answer.from + ", " + path + ": " + refusal.text, "", 0};
  if (refusal.text.find("CommonName of client") != std::string::npos) {
    error.code = ErrorCode::kPermission;
    error.hint =
        "with users, etcd's gateway takes only client certificates without a CN: make one whose subject "
        "has none (its names in subjectAltName)";
  } else if (IsAboutUser(refusal)) {
    error.code = ErrorCode::kPermission;
    error.hint = "see that userFile and passwordFile name a user of this etcd with the right password";
  } else if (refusal.code == kGrpcPermissionDenied || answer.status == 403) {
    error.code = ErrorCode::kPermission;
    error.hint =
        "give the user a role that may read and write below the prefix: etcdctl role "
        "grant-permission ROLE --prefix=true readwrite PREFIX/";
  } else if (refusal.code == kGrpcFailedPrecondition &&
             refusal.text.find("authentication is not enabled") != std::string::npos) {
    error.code = ErrorCode::kInvalid;
    error.hint = "this etcd has no users: leave userFile and passwordFile out, or enable authentication";
  } else if (answer.status == 404 || refusal.code == kGrpcUnimplemented || refusal.code == kGrpcNotFound) {
    error.code = ErrorCode::kInvalid;
    error.hint = "see that the endpoints are client addresses of etcd 3.4 or later with its gRPC gateway on";
  } else if (refusal.code == kGrpcInvalidArgument || answer.status == 400) {
    error.code = ErrorCode::kInvalid;
  } else if (refusal.text.find("database space exceeded") != std::string::npos) {
    error.hint = "compact and defragment etcd, then etcdctl alarm disarm";
  }
  return error;
}

HttpClientSettings ClientSettings(const Root& root, const EtcdConfig& config) {
  const auto file = [&root](const std::string& path) {
    return Pem{path.empty() ? path : root.Path(path), ""};
  };
  HttpClientSettings settings;
  settings.endpoints = config.endpoints;
  settings.tls.authorities = file(config.ca_file);
  settings.tls.certificate = file(config.cert_file);
  settings.tls.key = file(config.key_file);
  settings.timeout = config.timeout;
  return settings;
}

std::string PathBelow(const Root& root, const std::string& path) {
  return path.empty() ? path : root.Path(path);
}

Result<std::string> FirstLine(const std::string& path, const std::string& what) {
  const auto text = RH_TRY_WRAP(ReadFile(path), "reading etcd's " + what);
  const std::string line = text ? text->substr(0, text->find_first_of("\r\n")) : "";
  if (line.empty()) {
    return Fail(ErrorCode::kInvalid,
                "reading etcd's " + what + ": " + path + (text ? " is empty" : " is not there"),
                "write the " + what + " into its first line");
  }
  return line;
}

}  // namespace

EtcdApi::EtcdApi(const Root& root, const EtcdConfig& config)
    : client_(ClientSettings(root, config)),
      user_file_(PathBelow(root, config.user_file)),
      password_file_(PathBelow(root, config.password_file)) {}

Result<void> EtcdApi::Authenticate() {
  token_.clear();
  const std::string path = "/v3/auth/authenticate";
  HttpCall call{"POST", path, {{"Content-Type", "application/json"}}, "", true};
  const std::string user = RH_TRY(FirstLine(user_file_, "user"));
  const std::string password = RH_TRY(FirstLine(password_file_, "password"));
  call.body =
      Json{{"name", user}, {"password", password}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  const HttpAnswer answer = RH_TRY(client_.Send(call));
  if (answer.status != 200) return Fail(ErrorOf(answer, path));
  const auto document = RH_TRY(JsonDocument::Parse(answer.body, "the answer of " + answer.from));
  JsonReader reader = document.Root();
  token_ = reader.RequiredString("token");
  if (!reader.status()) return Fail(ErrorCode::kMalformed, reader.status().error().message);
  return {};
}

Result<JsonDocument> EtcdApi::Call(const std::string& path, const std::string& body, bool repeatable) {
  const bool has_user = !user_file_.empty();
  for (bool again = false;; again = true) {
    if (has_user && token_.empty()) RH_TRY(Authenticate());
    HttpCall call{"POST", path, {{"Content-Type", "application/json"}}, body, repeatable};
    if (has_user) call.headers.emplace_back("Authorization", token_);
    const HttpAnswer answer = RH_TRY(client_.Send(call));
    if (answer.status == 200) {
      return JsonDocument::Parse(answer.body, "the answer of " + answer.from, answer.body.size());
    }
    if (has_user && !again && AsksForToken(ReadRefusal(answer))) {
      token_.clear();
      continue;
    }
    return Fail(ErrorOf(answer, path));
  }
}

}  // namespace railhead
