#include "deviceplugin/services/address_leasing/etcd_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "deviceplugin/support/http/http_message.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::address_leasing {
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

Refusal ReadRefusal(const http::HttpAnswer& answer) {
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

Error ErrorOf(const http::HttpAnswer& answer, const std::string& path) {
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

http::HttpClientSettings ClientSettings(const Root& root, const EtcdConfig& config) {
  const auto file = [&root](const std::string& path) {
    return http::Pem{path.empty() ? path : root.Path(path), ""};
  };
  http::HttpClientSettings settings;
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
  http::HttpCall call{"POST", path, {{"Content-Type", "application/json"}}, "", true};
  const std::string user = RH_TRY(FirstLine(user_file_, "user"));
  const std::string password = RH_TRY(FirstLine(password_file_, "password"));
  call.body =
      Json{{"name", user}, {"password", password}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  const http::HttpAnswer answer = RH_TRY(client_.Send(call));
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
    http::HttpCall call{"POST", path, {{"Content-Type", "application/json"}}, body, repeatable};
    if (has_user) call.headers.emplace_back("Authorization", token_);
    const http::HttpAnswer answer = RH_TRY(client_.Send(call));
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

namespace {

// Two files that go together.
void CheckBoth(const char* first_key, const std::string& first, const char* second_key,
               const std::string& second, const record::Complain& complain) {
  if (first.empty() == second.empty()) return;
  complain(first.empty() ? first_key : second_key, "is missing",
           std::string(first_key) + " and " + second_key + " go together");
}

}  // namespace
}  // namespace railhead::address_leasing

void railhead::Shape<railhead::address_leasing::EtcdConfig>::Complete(T& config) {
  while (config.prefix.ends_with('/')) config.prefix.pop_back();
}

void railhead::Shape<railhead::address_leasing::EtcdConfig>::Check(const T& config,
                                                                   const record::Complain& complain) {
  for (const auto& [key, path] : {std::pair{"caFile", &config.ca_file},
                                  {"certFile", &config.cert_file},
                                  {"keyFile", &config.key_file},
                                  {"userFile", &config.user_file},
                                  {"passwordFile", &config.password_file}}) {
    if (!path->empty() && !path->starts_with('/'))
      complain(key, "'" + *path + "' is not an absolute path", "for example /etc/railhead/etcd/ca.crt");
  }
  if (std::ranges::any_of(config.endpoints, &http::HttpEndpoint::tls) && config.ca_file.empty()) {
    complain("caFile", "is required with https://",
             "name the file of the authority that signed etcd's certificates");
  }
  address_leasing::CheckBoth("certFile", config.cert_file, "keyFile", config.key_file, complain);
  address_leasing::CheckBoth("userFile", config.user_file, "passwordFile", config.password_file, complain);
}

namespace railhead::address_leasing {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBlocks = "/v1/blocks/";
constexpr std::string_view kNodes = "/v1/nodes/";
constexpr std::size_t kKeyDigits = 20;  // of 2^64 - 1

Result<std::string> PoolKey(const std::string& pool) {
  const auto prefix = IpPrefix::Parse(pool);
  if (!prefix || prefix->ToString() != pool || prefix->Network() != *prefix) {
    return Fail(ErrorCode::kInvalid, "'" + pool + "' is not a subnet, but a pool must be one");
  }
  std::string text = pool;
  std::replace(text.begin(), text.end(), '/', '_');
  return std::string(kBlocks) + text + "/";
}

std::string Digits(std::uint64_t index) {
  const std::string digits = std::to_string(index);
  return std::string(kKeyDigits - digits.size(), '0') + digits;
}

// Sorts behind every key that begins with `prefix`, which ends with '/'.
std::string EndOf(std::string prefix) {
  prefix.back() = '/' + 1;
  return prefix;
}

std::optional<std::uint64_t> ParseDigits(std::string_view text) {
  if (text.size() != kKeyDigits) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (number > (UINT64_MAX - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  return number;
}

Error MalformedEtcd(const std::string& why) {
  return {ErrorCode::kMalformed, "etcd's answer: " + why,
          "see whether something else writes below the prefix, or answers for etcd", 0};
}

class EtcdStore : public ipam::ClusterStore {
 public:
  EtcdStore(const Root& root, const EtcdConfig& config) : api_(root, config), prefix_(config.prefix) {}

  Result<std::optional<ipam::LeaseEntry>> Get(const ipam::LeaseKey& key) override {
    const std::string bytes = RH_TRY(Key(key));
    auto found = RH_TRY_WRAP(Range(Json{{"key", http::EncodeBase64(bytes)}}, 1), "reading " + bytes);
    if (found.empty()) return std::nullopt;
    if (found[0].key != key) return Fail(MalformedEtcd("it has another key than " + bytes));
    return std::move(found[0]);
  }

  Result<ipam::LeaseEntry> Create(const ipam::LeaseKey& key, const std::string& value) override {
    const std::string bytes = RH_TRY(Key(key));
    const Json compare = {{"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}};
    auto revision =
        RH_TRY_WRAP(Change(bytes, compare, Put(bytes, value), "it is there already"), "creating " + bytes);
    return ipam::LeaseEntry{key, value, std::move(revision)};
  }

  Result<ipam::LeaseEntry> Update(const ipam::LeaseEntry& seen, const std::string& value) override {
    const std::string bytes = RH_TRY(Key(seen.key));
    auto revision = RH_TRY_WRAP(Change(bytes, Seen(seen), Put(bytes, value), "it is not as it was seen"),
                                "changing " + bytes);
    return ipam::LeaseEntry{seen.key, value, std::move(revision)};
  }

  Result<void> Remove(const ipam::LeaseEntry& seen) override {
    const std::string bytes = RH_TRY(Key(seen.key));
    const Json remove = {{"request_delete_range", {{"key", http::EncodeBase64(bytes)}}}};
    RH_TRY_WRAP(Change(bytes, Seen(seen), remove, "it is not as it was seen"), "removing " + bytes);
    return {};
  }

  Result<std::vector<ipam::LeaseEntry>> Blocks(const std::string& pool, std::uint64_t from,
                                               std::size_t limit) override {
    const std::string all = prefix_ + RH_TRY(PoolKey(pool));
    return WithContext(Range({{"key", http::EncodeBase64(all + Digits(from))},
                              {"range_end", http::EncodeBase64(EndOf(all))}},
                             limit),
                       "listing the blocks of " + pool);
  }

  Result<std::vector<ipam::LeaseEntry>> Nodes(const std::string& after, std::size_t limit) override {
    const std::string all = prefix_ + std::string(kNodes);
    const std::string first = after.empty() ? all : all + after + std::string(1, '\0');
    return WithContext(
        Range({{"key", http::EncodeBase64(first)}, {"range_end", http::EncodeBase64(EndOf(all))}}, limit),
        "listing nodes");
  }

  [[nodiscard]] std::uint64_t calls() const override { return api_.sent(); }

 private:
  [[nodiscard]] Result<std::string> Key(const ipam::LeaseKey& key) const {
    return prefix_ + RH_TRY(EtcdKeyOf(key));
  }

  static Json Put(const std::string& bytes, const std::string& value) {
    return {{"request_put", {{"key", http::EncodeBase64(bytes)}, {"value", http::EncodeBase64(value)}}}};
  }
  static Json Seen(const ipam::LeaseEntry& seen) {
    return {{"target", "MOD"}, {"result", "EQUAL"}, {"mod_revision", seen.revision}};
  }

  // Returns the key's revision afterwards. kConflict with the message `otherwise` when the comparison fails.
  Result<std::string> Change(const std::string& bytes, Json compare, const Json& request,
                             const std::string& otherwise) {
    compare["key"] = http::EncodeBase64(bytes);
    const Json body = {{"compare", Json::array({std::move(compare)})}, {"success", Json::array({request})}};
    const auto document = RH_TRY(api_.Call("/v3/kv/txn", body.dump(), false));
    JsonReader reader = document.Root();
    // The gateway omits fields that are false, zero or empty.
    const bool succeeded = reader.Bool("succeeded").value_or(false);
    std::string revision;
    if (auto header = reader.Object("header")) revision = header->RequiredString("revision");
    if (!reader.status()) return Fail(MalformedEtcd(reader.status().error().message));
    if (revision.empty()) return Fail(MalformedEtcd("it has no revision"));
    if (!succeeded) return Fail(ErrorCode::kConflict, otherwise);
    return revision;
  }

  Result<std::vector<ipam::LeaseEntry>> Range(Json body, std::size_t limit) {
    std::vector<ipam::LeaseEntry> entries;
    if (limit == 0) return entries;  // etcd takes 0 for "all"
    body["limit"] = std::to_string(limit);
    const auto document = RH_TRY(api_.Call("/v3/kv/range", body.dump(), true));
    JsonReader reader = document.Root();
    // An answer without a header is not etcd's. It must not count as an empty list.
    if (!reader.Object("header")) return Fail(MalformedEtcd("it has no header"));
    for (JsonReader& one : reader.Objects("kvs")) {
      const auto key = http::DecodeBase64(one.RequiredString("key"));
      const auto value = http::DecodeBase64(one.String("value").value_or(""));
      const std::string revision = one.RequiredString("mod_revision");
      if (!one.status()) break;
      auto parsed = key ? ParseKey(*key) : std::nullopt;
      if (!parsed || !value)
        return Fail(
            MalformedEtcd("'" + key.value_or("") + "' is not a key of Railhead, or its value is not base64"));
      entries.push_back({std::move(*parsed), *value, revision});
    }
    if (!reader.status()) return Fail(MalformedEtcd(reader.status().error().message));
    if (entries.size() > limit) return Fail(MalformedEtcd("it has more entries than were asked for"));
    return entries;
  }

  [[nodiscard]] std::optional<ipam::LeaseKey> ParseKey(std::string_view bytes) const {
    if (!bytes.starts_with(prefix_)) return std::nullopt;
    bytes.remove_prefix(prefix_.size());
    if (bytes.starts_with(kNodes) && bytes.size() > kNodes.size()) {
      return ipam::LeaseKey::Node(std::string(bytes.substr(kNodes.size())));
    }
    if (!bytes.starts_with(kBlocks)) return std::nullopt;
    bytes.remove_prefix(kBlocks.size());
    const std::size_t slash = bytes.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto index = ParseDigits(bytes.substr(slash + 1));
    std::string pool(bytes.substr(0, slash));
    std::replace(pool.begin(), pool.end(), '_', '/');
    if (!index || !IpPrefix::Parse(pool)) return std::nullopt;
    return ipam::LeaseKey::Block(std::move(pool), *index);
  }

  EtcdApi api_;
  const std::string prefix_;
};

}  // namespace

Result<std::string> EtcdKeyOf(const ipam::LeaseKey& key) {
  if (key.kind == ipam::LeaseKey::Kind::kBlock) return RH_TRY(PoolKey(key.pool)) + Digits(key.index);
  if (key.kind == ipam::LeaseKey::Kind::kIndex)
    return Fail(ErrorCode::kInvalid, Describe(key) + " is a record of the Kubernetes API only");
  if (key.node.empty() || key.node.find('/') != std::string::npos ||
      key.node.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "'" + key.node + "' is not a valid node name");
  }
  return std::string(kNodes) + key.node;
}

std::unique_ptr<ipam::ClusterStore> MakeEtcdStore(const Root& root, const EtcdConfig& config) {
  return std::make_unique<EtcdStore>(root, config);
}

}  // namespace railhead::address_leasing
