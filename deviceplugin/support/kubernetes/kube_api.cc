#include "deviceplugin/support/kubernetes/kube_api.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "deviceplugin/support/kubernetes/kube_access.h"
#include "netns/base/files.h"
#include "netns/base/root.h"

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

}  // namespace railhead
