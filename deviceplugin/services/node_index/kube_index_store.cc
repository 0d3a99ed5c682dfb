#include "deviceplugin/services/node_index/kube_index_store.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "deviceplugin/support/http/base64.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "netns/base/text.h"

namespace railhead::node_index {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kNamePrefix = "node-";
constexpr char kRevisionSeparator = '/';

std::string PathOf(const std::string& name) {
  return std::string(kClaimsPath) + "/" + name;
}

// The first name that sorts behind `name`.
std::string After(const std::string& name) {
  return name + std::string(1, '\0');
}

Error MalformedObject(const std::string& why) {
  return {ErrorCode::kMalformed, "the Kubernetes API's answer: " + why,
          "see that manifests/components/node-index of this version is applied, and that nothing else writes "
          "its resources",
          0};
}

Error Conflict(const std::string& why) {
  return {ErrorCode::kConflict, why, "", 0};
}

// Dumped as all values are: keys sorted, no blanks.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct Revision {
  std::string uid;
  std::string version;
};

Result<Revision> ParseRevision(const ClaimEntry& seen) {
  const std::size_t at = seen.revision.find(kRevisionSeparator);
  if (at == std::string::npos) {
    return Fail(ErrorCode::kInvalid, "'" + seen.revision + "' is not a revision of the Kubernetes API");
  }
  return Revision{seen.revision.substr(0, at), seen.revision.substr(at + 1)};
}

Result<Json> ObjectOf(const std::string& name, const std::string& value) {
  const auto spec = RH_TRY(JsonDocument::Parse(value, "the value of " + name));
  if (!spec.json().is_object())
    return Fail(ErrorCode::kInvalid, "the value of " + name + " is not an object");
  return Json{{"apiVersion", "railhead.io/v1alpha1"},
              {"kind", "NodeIndex"},
              {"metadata", {{"name", name}}},
              {"spec", spec.json()}};
}

class KubeIndexStore : public IndexStore {
 public:
  KubeIndexStore(const KubeAccess& access, std::chrono::milliseconds timeout) : api_(access, timeout) {}

  Result<std::optional<ClusterNode>> Node(const std::string& name) override;
  Result<std::vector<ClaimEntry>> Claims(const std::optional<std::uint64_t>& after,
                                         std::size_t limit) override {
    return WithContext(List(after ? After(KubeNameOf(*after)) : "", limit), "listing the claims of indices");
  }
  Result<std::optional<ClaimEntry>> Get(std::uint64_t index) override;
  Result<ClaimEntry> Create(std::uint64_t index, const std::string& value) override {
    const std::string name = KubeNameOf(index);
    const Json object = RH_TRY(ObjectOf(name, value));
    return WithContext(Change("POST", kClaimsPath, index, object), "creating " + name);
  }
  Result<ClaimEntry> Update(const ClaimEntry& seen, const std::string& value) override {
    const std::string name = KubeNameOf(seen.index);
    const Revision revision = RH_TRY(ParseRevision(seen));
    Json object = RH_TRY(ObjectOf(name, value));
    object["metadata"]["uid"] = revision.uid;
    object["metadata"]["resourceVersion"] = revision.version;
    return WithContext(Change("PUT", PathOf(name), seen.index, object), "changing " + name);
  }
  Result<void> Remove(const ClaimEntry& seen) override;

 private:
  Result<ClaimEntry> Change(const std::string& method, const std::string& path, std::uint64_t index,
                            const Json& object);
  // Objects whose names sort from `start` on.
  Result<std::vector<ClaimEntry>> List(const std::string& start, std::size_t limit);

  KubeApi api_;
};

Result<std::optional<ClusterNode>> KubeIndexStore::Node(const std::string& name) {
  const std::string what = "reading node " + name;
  const KubeAnswer answer = RH_TRY_WRAP(api_.Call("GET", "/api/v1/nodes/" + EscapeForQuery(name)), what);
  if (answer.status != KubeAnswer::Status::kDone) return std::nullopt;
  JsonReader root = answer.document.Root();
  ClusterNode node;
  if (auto metadata = root.Object("metadata")) node.uid = metadata->RequiredString("uid");
  if (auto status = root.Object("status")) {
    if (auto info = status->Object("nodeInfo")) node.machine = info->String("systemUUID").value_or("");
  }
  RH_TRY_WRAP(root.status(), what);
  if (node.uid.empty()) return Fail(MalformedObject("node " + name + " has no uid"));
  return node;
}

Result<std::optional<ClaimEntry>> KubeIndexStore::Get(std::uint64_t index) {
  const std::string name = KubeNameOf(index);
  const KubeAnswer answer = RH_TRY_WRAP(api_.Call("GET", PathOf(name)), "reading " + name);
  if (answer.status == KubeAnswer::Status::kNotFound) return std::nullopt;
  if (answer.status == KubeAnswer::Status::kExpired)
    return Fail(MalformedObject("an object that is too old"));
  auto entry = RH_TRY(ParseClaim(answer.document.Root()));
  if (!entry || entry->index != index) return Fail(MalformedObject("it is another object than " + name));
  return entry;
}

Result<void> KubeIndexStore::Remove(const ClaimEntry& seen) {
  const std::string name = KubeNameOf(seen.index);
  const Revision revision = RH_TRY(ParseRevision(seen));
  const Json options = {{"apiVersion", "v1"},
                        {"kind", "DeleteOptions"},
                        {"preconditions", {{"uid", revision.uid}, {"resourceVersion", revision.version}}}};
  const KubeAnswer answer =
      RH_TRY_WRAP(api_.Call("DELETE", PathOf(name), options.dump()), "removing " + name);
  if (answer.status != KubeAnswer::Status::kDone) return Fail(Conflict("removing " + name + ": it is gone"));
  // While a finalizer keeps the object, the answer is the object itself.
  JsonReader reader = answer.document.Root();
  if (reader.String("kind") == "Status") return {};
  if (auto metadata = reader.Object("metadata");
      metadata && !metadata->Strings("finalizers").value_or(std::vector<std::string>{}).empty()) {
    return Fail(ErrorCode::kUnavailable, "removing " + name + ": finalizers that are not ours keep it",
                "kubectl edit the object and remove its finalizers");
  }
  return {};
}

Result<ClaimEntry> KubeIndexStore::Change(const std::string& method, const std::string& path,
                                          std::uint64_t index, const Json& object) {
  const KubeAnswer answer = RH_TRY(api_.Call(method, path, Dump(object)));
  if (answer.status != KubeAnswer::Status::kDone) return Fail(Conflict("it is gone"));
  auto entry = RH_TRY(ParseClaim(answer.document.Root()));
  if (!entry || entry->index != index) return Fail(MalformedObject("it is another object than was sent"));
  if (entry->value != Dump(object["spec"])) {
    return Fail(MalformedObject("the server has kept something else than was sent: " + entry->value));
  }
  return *std::move(entry);
}

Result<std::vector<ClaimEntry>> KubeIndexStore::List(const std::string& start, std::size_t limit) {
  std::vector<ClaimEntry> entries;
  std::string token = start.empty() ? "" : KubeContinueAt(start);
  // A server may answer with fewer entries than it has, and with a token for the rest.
  while (entries.size() < limit) {
    std::string target = std::string(kClaimsPath) + "?limit=" + std::to_string(limit - entries.size());
    if (!token.empty()) target += "&continue=" + EscapeForQuery(token);
    const KubeAnswer answer = RH_TRY(api_.Call("GET", target));
    if (answer.status != KubeAnswer::Status::kDone) {
      return Fail(ErrorCode::kUnavailable, "the list has changed too much while it was read", "try again");
    }
    JsonReader reader = answer.document.Root();
    std::string next;
    if (auto metadata = reader.Object("metadata")) {
      next = metadata->String("continue").value_or("");
      metadata->RequiredString("resourceVersion");
    } else {
      return Fail(MalformedObject("it is not a list"));
    }
    for (JsonReader& item : reader.Objects("items")) {
      if (auto entry = RH_TRY(ParseClaim(std::move(item)))) entries.push_back(*std::move(entry));
    }
    if (!reader.status()) return Fail(MalformedObject(reader.status().error().message));
    if (entries.size() > limit) return Fail(MalformedObject("it has more objects than were asked for"));
    if (next.empty()) break;
    token = std::move(next);
  }
  return entries;
}

}  // namespace

Result<std::optional<ClaimEntry>> ParseClaim(JsonReader object) {
  ClaimEntry entry;
  std::string name;
  if (auto metadata = object.Object("metadata")) {
    name = metadata->RequiredString("name");
    entry.revision =
        metadata->RequiredString("uid") + kRevisionSeparator + metadata->RequiredString("resourceVersion");
  }
  const Json* spec = object.Raw("spec");
  if (!object.status()) return Fail(MalformedObject(object.status().error().message));
  const auto index = ParseKubeName(name);
  if (!index) return std::nullopt;
  entry.index = *index;
  // The claim counts by its name, even if nobody can read it.
  entry.value = spec != nullptr ? Dump(*spec) : "null";
  return entry;
}

std::string KubeNameOf(std::uint64_t index) {
  return std::string(kNamePrefix) + std::to_string(index);
}

std::optional<std::uint64_t> ParseKubeName(const std::string& name) {
  if (!name.starts_with(kNamePrefix)) return std::nullopt;
  const auto number = ParseInt(name.substr(kNamePrefix.size()));
  if (!number || *number < 0) return std::nullopt;
  const auto index = static_cast<std::uint64_t>(*number);
  // Each index has one name: another spelling is none.
  if (index > kLastIndex || name != KubeNameOf(index)) return std::nullopt;
  return index;
}

std::string KubeContinueAt(const std::string& start) {
  const Json token = {{"v", "meta.k8s.io/v1"}, {"rv", -1}, {"start", start}};
  std::string text = http::EncodeBase64(token.dump());
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::unique_ptr<IndexStore> MakeKubeIndexStore(const KubeAccess& access, std::chrono::milliseconds timeout) {
  return std::make_unique<KubeIndexStore>(access, timeout);
}

}  // namespace railhead::node_index
