#include "deviceplugin/support/kubernetes/kube_api.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "deviceplugin/support/http/http_message.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/root_file.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::size_t kMostShown = 200;

http::HttpClientSettings ClientSettings(const KubeAccess& access, std::chrono::milliseconds timeout,
                                        std::size_t most_bytes) {
  http::HttpClientSettings settings;
  settings.endpoint = access.endpoint;
  settings.tls = access.tls;
  settings.timeout = timeout;
  settings.most_bytes = most_bytes;
  return settings;
}

// The API's own form of an error: kind Status.
struct Refusal {
  std::string reason;
  std::string message;
  bool of_an_object = false;  // details.name: the resource itself is known
};

Refusal ReadRefusal(const http::HttpAnswer& answer) {
  Refusal refusal;
  if (const auto document = JsonDocument::Parse(answer.body, answer.from, answer.body.size())) {
    JsonReader reader = document->Root();
    refusal.reason = reader.String("reason").value_or("");
    refusal.message = reader.String("message").value_or("");
    if (auto details = reader.Object("details")) refusal.of_an_object = details->Has("name");
  }
  if (refusal.message.empty()) {
    refusal.message = "HTTP status " + std::to_string(answer.status);
    const std::string line = answer.body.substr(0, std::min(answer.body.find_first_of("\r\n"), kMostShown));
    if (!line.empty()) refusal.message += ": " + line;
  }
  return refusal;
}

Error ErrorOf(const http::HttpAnswer& answer, const Refusal& refusal, const KubeNeeds& needs) {
  Error error{ErrorCode::kInvalid, "the Kubernetes API at " + answer.from + ": " + refusal.message, "", 0};
  switch (answer.status) {
    case 401:
      error.code = ErrorCode::kPermission;
      error.hint =
          "the token or client certificate is not (or no more) known to the API server: see the service "
          "account's token, or the user of the kubeconfig";
      break;
    case 403:
      error.code = ErrorCode::kPermission;
      error.hint = "apply " + needs.component + ", and bind its role " + needs.role + " to this user";
      break;
    case 404:
      error.hint = "apply " + needs.component + ": the API server does not know the resource";
      break;
    case 409:
      error.code = ErrorCode::kConflict;
      break;
    case 429:
      error.code = ErrorCode::kUnavailable;
      if (!answer.retry_after.empty())
        error.message += ", to be asked again after " + answer.retry_after + " s";
      break;
    case 504:
      error.code = ErrorCode::kTimeout;
      break;
    default:
      if (answer.status >= 500) error.code = ErrorCode::kUnavailable;
      if (answer.status < 400) error.code = ErrorCode::kMalformed;
  }
  return error;
}

// As client-go's IsTooLargeResourceVersion: also servers without the cause in `details` say it.
bool IsOfTheFuture(const http::HttpAnswer& answer, const Refusal& refusal) {
  return answer.status == 504 && refusal.message.find("Too large resource version") != std::string::npos;
}

}  // namespace

KubeApi::KubeApi(const KubeAccess& access, std::chrono::milliseconds timeout, KubeNeeds needs,
                 std::size_t most_bytes)
    : settings_(ClientSettings(access, timeout, most_bytes)),
      client_(settings_),
      needs_(std::move(needs)),
      token_(access.token),
      token_file_(access.token_file) {}

Result<std::string> KubeApi::Token() const {
  if (token_file_.empty()) return token_;
  // Not as a file of root's: kubelet chooses owner and mode of a token in a projected volume by the pod's
  // user.
  const auto text = RH_TRY_WRAP(ReadAttribute(token_file_), "reading the token for the Kubernetes API");
  if (text && !text->empty()) return *text;
  if (!token_.empty()) return token_;
  return Fail(
      ErrorCode::kPermission,
      "reading the token for the Kubernetes API: " + token_file_ + (text ? " is empty" : " is not there"),
      "in a pod, automountServiceAccountToken has to be true for it");
}

Result<http::HttpCall> KubeApi::CallOf(const std::string& method, const std::string& target,
                                       const std::string& body, const std::string& type) const {
  http::HttpCall call{method, target, {}, body, method == "GET"};
  const std::string token = RH_TRY(Token());
  if (!token.empty()) call.headers.emplace_back("Authorization", "Bearer " + token);
  if (!body.empty()) call.headers.emplace_back("Content-Type", type);
  return call;
}

Result<std::optional<http::HttpStream>> KubeApi::Stream(const std::string& target) {
  const http::HttpCall call = RH_TRY(CallOf("GET", target, "", ""));
  auto stream = RH_TRY(http::HttpStream::Open(settings_, call));
  if (stream.status() / 100 == 2) return stream;
  const auto answer = RH_TRY(stream.ReadRest(std::chrono::steady_clock::now() + settings_.timeout));
  const Refusal refusal = ReadRefusal(answer);
  if (answer.status == 410 || IsOfTheFuture(answer, refusal)) return std::nullopt;
  return Fail(ErrorOf(answer, refusal, needs_));
}

Result<KubeAnswer> KubeApi::Call(const std::string& method, const std::string& target,
                                 const std::string& body, const std::string& type) {
  const http::HttpCall call = RH_TRY(CallOf(method, target, body, type));
  const http::HttpAnswer answer = RH_TRY(client_.Send(call));
  if (answer.status / 100 != 2) {
    const Refusal refusal = ReadRefusal(answer);
    const bool not_found = answer.status == 404 && refusal.reason == "NotFound" && refusal.of_an_object;
    if (!not_found && answer.status != 410) return Fail(ErrorOf(answer, refusal, needs_));
    auto none = RH_TRY(JsonDocument::Parse("{}", answer.from));
    return KubeAnswer{not_found ? KubeAnswer::Status::kNotFound : KubeAnswer::Status::kExpired,
                      std::move(none)};
  }
  auto document =
      RH_TRY(JsonDocument::Parse(answer.body, "the answer of " + answer.from, answer.body.size()));
  return KubeAnswer{KubeAnswer::Status::kDone, std::move(document)};
}

std::string EscapeForQuery(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~").find(c) != std::string_view::npos;
    if (is_plain) {
      escaped += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      escaped += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return escaped;
}

namespace {

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

Result<KubeAccess> InPod(const Root& root, const KubeService& service) {
  if (service.host.empty() || service.port.empty()) {
    return Fail(ErrorCode::kInvalid,
                "reaching the Kubernetes API: there is neither a kubeconfig in the configuration nor "
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in the environment",
                "outside of a pod, name a kubeconfig file");
  }
  const bool v6 = service.host.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + service.host + "]" : service.host;
  KubeAccess access;
  access.endpoint = RH_TRY(http::ParseHttpEndpoint("https://" + host + ":" + service.port));
  access.tls.authorities.file = root.Path(std::string(kServiceAccount) + "ca.crt");
  access.token_file = root.Path(std::string(kServiceAccount) + "token");
  return access;
}

// An entry in kubectl's form: "name:" and the object beside it.
std::optional<JsonReader> Named(std::vector<JsonReader> list, const std::string& name,
                                const std::string& key) {
  for (JsonReader& one : list) {
    if (one.String("name") == name) return one.Object(key);
  }
  return std::nullopt;
}

class KubeconfigFile {
 public:
  KubeconfigFile(const Root& root, const std::string& path)
      : root_(root), directory_(path.substr(0, path.rfind('/') + 1)) {}

  void ReadCluster(JsonReader& cluster, KubeAccess& access) const {
    const std::string server = cluster.RequiredString("server");
    if (auto endpoint = http::ParseHttpEndpoint(server)) {
      access.endpoint = *endpoint;
    } else {
      cluster.Fail("server", endpoint.error().message, endpoint.error().hint);
    }
    access.tls.server_name = cluster.String("tls-server-name").value_or("");
    access.tls.authorities = ReadPem(cluster, "certificate-authority");
    if (cluster.Bool("insecure-skip-tls-verify").value_or(false)) {
      cluster.Fail("insecure-skip-tls-verify", "is refused: any host that answers could hand out addresses",
                   "give the server's certificate-authority");
    }
    Refuse(cluster, "proxy-url", "proxies are not used", "name a server that is reached directly");
  }

  void ReadUser(JsonReader& user, KubeAccess& access) const {
    access.tls.certificate = ReadPem(user, "client-certificate");
    access.tls.key = ReadPem(user, "client-key");
    access.token = user.String("token").value_or("");
    access.token_file = PathOf(user.String("tokenFile").value_or(""));
    const std::string way_out = "make a kubeconfig with a client certificate, a token or a tokenFile";
    Refuse(user, "exec", "programs that fetch credentials are not run", way_out);
    Refuse(user, "auth-provider", "providers of credentials are not known here", way_out);
    Refuse(user, "username", "the Kubernetes API no longer accepts passwords", way_out);
    Refuse(user, "as", "being someone else is not known here", way_out);
  }

 private:
  static void Refuse(JsonReader& reader, const std::string& key, const std::string& why,
                     const std::string& hint) {
    if (reader.Has(key)) reader.Fail(key, why, hint);
  }

  // As kubectl does: from the kubeconfig's directory.
  [[nodiscard]] std::string PathOf(const std::string& path) const {
    if (path.empty()) return path;
    return root_.Path(path[0] == '/' ? path : directory_ + path);
  }

  http::Pem ReadPem(JsonReader& reader, const std::string& key) const {
    http::Pem pem;
    if (const auto data = reader.String(key + "-data"); data && !data->empty()) {
      auto text = http::DecodeBase64(*data);
      if (!text) reader.Fail(key + "-data", "is not base64");
      pem.text = std::move(text).value_or("");
      return pem;
    }
    pem.file = PathOf(reader.String(key).value_or(""));
    return pem;
  }

  const Root& root_;
  const std::string directory_;
};

Result<KubeAccess> FromKubeconfig(const Root& root, const KubeConfig& config) {
  const std::string path = root.Path(config.kubeconfig);
  const auto text = RH_TRY_WRAP(ReadVolumeFile(path), "reading the kubeconfig");
  if (!text) {
    return Fail(ErrorCode::kInvalid, "reading the kubeconfig " + path + ": no such file",
                "put it there, or name another one");
  }
  const std::string json = RH_TRY(YamlToJson(*text, path));
  const auto document = RH_TRY(JsonDocument::Parse(json, path));
  JsonReader reader = document.Root();
  const std::string current = reader.String("current-context").value_or("");
  const std::string name = config.context.empty() ? current : config.context;
  auto context = Named(reader.Objects("contexts"), name, "context");
  if (!context) {
    reader.Fail("contexts", "has no context '" + name + "'",
                "name one that is there, as current-context or context");
    return Fail(reader.status().error());
  }
  const KubeconfigFile file(root, config.kubeconfig);
  KubeAccess access;
  const std::string cluster_name = context->RequiredString("cluster");
  auto cluster = Named(reader.Objects("clusters"), cluster_name, "cluster");
  if (!cluster) {
    context->Fail("cluster", "cluster '" + cluster_name + "' does not exist");
  } else {
    file.ReadCluster(*cluster, access);
  }
  if (const auto user_name = context->String("user")) {
    auto user = Named(reader.Objects("users"), *user_name, "user");
    if (!user) {
      context->Fail("user", "user '" + *user_name + "' does not exist");
    } else {
      file.ReadUser(*user, access);
    }
  }
  RH_TRY(reader.status());
  return access;
}

}  // namespace

void Shape<KubeConfig>::Check(const KubeConfig& config, const record::Complain& complain) {
  if (!config.kubeconfig.empty() && config.kubeconfig[0] != '/')
    complain("kubeconfig", "'" + config.kubeconfig + "' is not an absolute path",
             "for example /etc/kube/config");
  if (!config.context.empty() && config.kubeconfig.empty())
    complain("context", "is of use with a kubeconfig only", "name the kubeconfig, or leave the context out");
}

Result<KubeAccess> FindKubeAccess(const Root& root, const KubeConfig& config, const KubeService& service) {
  return config.kubeconfig.empty() ? InPod(root, service) : FromKubeconfig(root, config);
}

namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 20;
// A few aliases can stand for any number of nodes.
constexpr int kMostNodes = 20000;

class Converter {
 public:
  // nullopt: too deep, or too many nodes.
  std::optional<Json> Convert(const YAML::Node& node, int depth) {
    if (depth > kDeepest || ++nodes_ > kMostNodes) return std::nullopt;
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Json(nullptr);
      case YAML::NodeType::Scalar:
        return Scalar(node);
      case YAML::NodeType::Sequence:
        return Sequence(node, depth);
      case YAML::NodeType::Map:
        return Map(node, depth);
    }
    return std::nullopt;
  }

 private:
  static Json Scalar(const YAML::Node& node) {
    const bool is_quoted = node.Tag() == "!";
    if (!is_quoted && node.Scalar() == "true") return true;
    if (!is_quoted && node.Scalar() == "false") return false;
    return node.Scalar();
  }

  std::optional<Json> Sequence(const YAML::Node& node, int depth) {
    Json list = Json::array();
    for (const YAML::Node& item : node) {
      auto converted = Convert(item, depth + 1);
      if (!converted) return std::nullopt;
      list.push_back(std::move(*converted));
    }
    return list;
  }

  std::optional<Json> Map(const YAML::Node& node, int depth) {
    Json object = Json::object();
    for (const auto& item : node) {
      auto converted = Convert(item.second, depth + 1);
      if (!converted) return std::nullopt;
      object[item.first.Scalar()] = std::move(*converted);
    }
    return object;
  }

  int nodes_ = 0;
};

std::vector<YAML::Node> OnlyOne(const std::string& yaml) {
  return {YAML::Load(yaml)};
}

// At a token that cannot begin anything, such as a ',' outside of brackets, yaml-cpp does not advance. It
// reports empty documents without end.
class Progress final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_) throw YAML::ParserException(mark, "nothing can begin here");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

std::vector<YAML::Node> All(const std::string& yaml) {
  std::istringstream stream(yaml);
  YAML::Parser parser(stream);
  Progress progress;
  while (parser.HandleNextDocument(progress)) {
  }
  return YAML::LoadAll(yaml);
}

template <typename Load>
Result<std::vector<std::string>> Convert(const std::string& yaml, const std::string& what, Load load) {
  try {
    Converter converter;
    std::vector<std::string> texts;
    for (const YAML::Node& document : load(yaml)) {
      const auto json = converter.Convert(document, 0);
      if (!json) return Fail(ErrorCode::kMalformed, what + ": nested too deeply, or too large");
      texts.push_back(json->dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return texts;
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kMalformed,
                what + ":" + std::to_string(error.mark.line + 1) + ": no YAML: " + error.msg);
  }
}

}  // namespace

Result<std::string> YamlToJson(const std::string& yaml, const std::string& what) {
  return std::move(RH_TRY(Convert(yaml, what, OnlyOne)).front());
}

Result<std::vector<std::string>> YamlDocumentsToJson(const std::string& yaml, const std::string& what) {
  return Convert(yaml, what, All);
}

namespace {

// Whether all readers take the text for a string: it begins with a letter or '/', and is not a word of YAML
// 1.1.
bool IsPlain(const std::string& text) {
  constexpr std::string_view kMarks = "/_-.";
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto fits = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || kMarks.find(c) != std::string_view::npos;
  };
  if (text.empty() || !(is_letter(text[0]) || text[0] == '/') || !std::ranges::all_of(text, fits))
    return false;
  const std::vector<std::string_view> words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  return std::ranges::find(words, ToLower(text)) == words.end();
}

void EmitText(YAML::Emitter& yaml, const std::string& text) {
  if (!IsPlain(text)) yaml << YAML::DoubleQuoted;
  yaml << text;
}

void Emit(YAML::Emitter& yaml, const nlohmann::ordered_json& json) {
  if (json.is_string()) return EmitText(yaml, json.get<std::string>());
  if (json.is_null()) {
    yaml << YAML::Null;
    return;
  }
  if (!json.is_structured()) {
    yaml << json.dump();  // a number, true or false: YAML writes them alike
    return;
  }
  if (json.empty()) yaml << YAML::Flow;
  yaml << (json.is_object() ? YAML::BeginMap : YAML::BeginSeq);
  for (const auto& item : json.items()) {
    if (json.is_object()) {
      yaml << YAML::Key;
      EmitText(yaml, item.key());
      yaml << YAML::Value;
    }
    Emit(yaml, item.value());
  }
  yaml << (json.is_object() ? YAML::EndMap : YAML::EndSeq);
}

}  // namespace

std::string JsonToYaml(const nlohmann::ordered_json& json) {
  using Ordered = nlohmann::ordered_json;
  YAML::Emitter yaml;
  yaml.SetNullFormat(YAML::LowerNull);
  Emit(yaml, Ordered::parse(json.dump(-1, ' ', false, Ordered::error_handler_t::replace)));
  return std::string(yaml.c_str()) + "\n";
}

}  // namespace railhead
