#include "cni/protocol/read_request.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <string_view>

#include "cni/protocol/cni_result.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

constexpr const char* kValidAttachments = "cni.dev/valid-attachments";
constexpr std::size_t kMaxContainerId = 128;  // it becomes a file name
constexpr std::size_t kMaxObjectName = 253;   // Kubernetes' own limit (DNS-1123 subdomain)

// What a call is about.
enum class Subject { kUnknown, kPlugin, kNetwork, kContainer };

Subject SubjectOf(std::string_view command) {
  if (command == "ADD" || command == "DEL" || command == "CHECK") return Subject::kContainer;
  if (command == "GC" || command == "STATUS") return Subject::kNetwork;
  return command == "VERSION" ? Subject::kPlugin : Subject::kUnknown;
}

tl::unexpected<CniFailure> Refuse(int code, std::string message, std::string hint = {}) {
  return tl::unexpected<CniFailure>(
      CniFailure{code, Error{ErrorCode::kInvalid, std::move(message), std::move(hint), 0}});
}

// SPEC.md: starts with an alphanumeric, then alphanumerics, '_', '.', '-'.
bool IsIdentifier(std::string_view text, std::size_t longest) {
  if (text.empty() || text.size() > longest || std::isalnum(static_cast<unsigned char>(text[0])) == 0)
    return false;
  return std::ranges::all_of(
      text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; });
}

// A name that did not pass, made safe to print.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const unsigned char c : text.substr(0, 64))
    quoted += std::isprint(c) != 0 ? static_cast<char>(c) : '?';
  return quoted + (text.size() > 64 ? "...'" : "'");
}

// DEL works from the journal. ADD refused an argument that is wrong, so DEL has nothing to do for it, and
// must not fail: the runtime would keep the pod's sandbox for good.
bool IsLenient(const CniRequest& request) {
  return request.command == "DEL";
}

tl::expected<void, CniFailure> ReadArgs(const std::string& text, CniRequest& request) {
  for (const auto& pair : Split(text, ';')) {
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      if (IsLenient(request)) continue;
      return Refuse(kCniBadEnvironment, "CNI_ARGS: " + Quoted(pair) + " is not KEY=VALUE");
    }
    request.args[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  // These become paths below kubelet's folder, or are written to logs. Also for DEL: a call without them
  // would be root's own, which may do more.
  for (const char* name : {"K8S_POD_UID", "K8S_POD_NAME", "K8S_POD_NAMESPACE"}) {
    const auto found = request.args.find(name);
    if (found == request.args.end() || found->second.empty() || IsIdentifier(found->second, kMaxObjectName))
      continue;
    return Refuse(kCniBadEnvironment, std::string("CNI_ARGS ") + name + " " + Quoted(found->second) +
                                          " is not a Kubernetes name");
  }
  return {};
}

bool IsAbsolutePath(std::string_view text) {
  return text.starts_with('/') && text.size() < PATH_MAX &&
         std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c != 0x7f; });
}

tl::expected<void, CniFailure> CheckNames(const CniRequest& request) {
  if (!IsIdentifier(request.container_id, kMaxContainerId)) {
    return Refuse(kCniBadEnvironment,
                  "CNI_CONTAINERID " + Quoted(request.container_id) + " is not a container id",
                  "letters, digits, '_', '.', '-', at most 128 of them");
  }
  if (request.ifname.empty() || (!IsLenient(request) && !IsInterfaceName(request.ifname))) {
    return Refuse(kCniBadEnvironment, "CNI_IFNAME " + Quoted(request.ifname) + " is not an interface name",
                  "1 to 15 ASCII characters, no '/', ':', '%', blanks or control characters, not 'all' or "
                  "'default'");
  }
  if (IsLenient(request)) return {};
  if (request.netns.empty()) {
    return Refuse(kCniBadEnvironment, "CNI_NETNS is not set", "it is required for " + request.command);
  }
  if (!IsAbsolutePath(request.netns)) {
    return Refuse(kCniBadEnvironment, "CNI_NETNS " + Quoted(request.netns) + " is not an absolute path",
                  "for example /var/run/netns/NAME");
  }
  return {};
}

}  // namespace

tl::expected<CniRequest, CniFailure> ReadEnvironment(const Environment& environment) {
  CniRequest request;
  auto get = [&](const char* name) { return environment(name).value_or(""); };
  request.command = get("CNI_COMMAND");
  if (request.command.empty()) {
    return Refuse(kCniBadEnvironment, "CNI_COMMAND is not set", "this is a CNI plugin: run it with --help");
  }
  const Subject subject = SubjectOf(request.command);
  if (subject == Subject::kPlugin) return request;
  if (subject == Subject::kUnknown) {
    return Refuse(kCniBadEnvironment, "CNI_COMMAND " + Quoted(request.command) + " is not known",
                  "known: ADD, DEL, CHECK, GC, STATUS, VERSION");
  }
  for (auto& directory : Split(get("CNI_PATH"), ':')) {
    if (!directory.empty()) request.path.push_back(std::move(directory));
  }
  if (subject == Subject::kNetwork) {
    if (request.path.empty()) {
      return Refuse(kCniBadEnvironment, "CNI_PATH is not set", "it is required for " + request.command);
    }
    return request;
  }
  request.container_id = get("CNI_CONTAINERID");
  request.netns = get("CNI_NETNS");
  request.ifname = get("CNI_IFNAME");
  request.netns_override = !get("CNI_NETNS_OVERRIDE").empty();
  if (auto read = ReadArgs(get("CNI_ARGS"), request); !read) return tl::unexpected<CniFailure>(read.error());
  if (auto checked = CheckNames(request); !checked) return tl::unexpected<CniFailure>(checked.error());
  return request;
}

tl::expected<void, CniFailure> ReadConfiguration(const std::string& config, CniRequest& request) {
  const auto document = JsonDocument::Parse(config, "network configuration");
  if (!document)
    return tl::unexpected<CniFailure>(CniFailure{CniCodeOf(document.error().code), document.error()});
  JsonReader reader = document->Root();
  request.cni_version = reader.String("cniVersion").value_or("0.1.0");  // SPEC.md's default
  request.network = reader.String("name").value_or("");
  if (auto status = reader.status(); !status) {
    return tl::unexpected<CniFailure>(CniFailure{kCniInvalidConfig, status.error()});
  }
  if (request.command == "VERSION") return {};
  if (!IsSupportedCniVersion(request.cni_version)) {
    return Refuse(kCniIncompatibleVersion, "cniVersion " + Quoted(request.cni_version) + " is not supported",
                  "supported: " + Join(SupportedCniVersions(), ", "));
  }
  if (!IsIdentifier(request.network, kMaxObjectName)) {
    return Refuse(kCniInvalidConfig,
                  "network configuration: /name: " + Quoted(request.network) + " is not a network name",
                  "letters, digits, '_', '.', '-', at most 253 of them");
  }
  if (request.command == "CHECK" && request.cni_version.starts_with("0.3.")) {
    return Refuse(kCniIncompatibleVersion,
                  "CHECK needs cniVersion 0.4.0 or later, not " + request.cni_version);
  }
  // Like libcni's skel: the version does not fit, not the environment.
  if (SubjectOf(request.command) == Subject::kNetwork && request.cni_version != "1.1.0") {
    return Refuse(kCniIncompatibleVersion,
                  request.command + " needs cniVersion 1.1.0 or later, not " + request.cni_version);
  }
  request.config = config;
  return {};
}

Result<std::vector<ValidAttachment>> ReadValidAttachments(const std::string& config) {
  const auto document = RH_TRY(JsonDocument::Parse(config, "network configuration"));
  JsonReader root = document.Root();
  if (!root.Has(kValidAttachments)) {
    root.Fail(kValidAttachments, "is missing: GC would not know what is in use",
              "the runtime must list the valid attachments; an empty list is []");
  }
  std::vector<ValidAttachment> valid;
  for (JsonReader& entry : root.Objects(kValidAttachments)) {
    std::string container_id = entry.RequiredString("containerID");
    valid.push_back({std::move(container_id), entry.RequiredString("ifname")});
  }
  RH_TRY(root.status());
  return valid;
}

}  // namespace railhead
