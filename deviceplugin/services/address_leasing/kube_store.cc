#include "deviceplugin/services/address_leasing/kube_store.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "netns/base/addresses.h"
#include "netns/base/text.h"

namespace railhead::address_leasing {
namespace {

constexpr std::size_t kIndexDigits = 16;
constexpr std::size_t kLongestName = 253;
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kIndexName = "node-";

std::string Hex(std::uint64_t number, std::size_t digits) {
  std::string text;
  for (; number != 0 || text.size() < digits; number >>= 4U) text.insert(text.begin(), kHex[number & 15U]);
  return text;
}

std::optional<IpPrefix> ParsePool(const std::string& pool) {
  const auto prefix = IpPrefix::Parse(pool);
  if (!prefix || prefix->ToString() != pool || prefix->Network() != *prefix) return std::nullopt;
  return prefix;
}

std::string PoolName(const IpPrefix& pool) {
  std::string text;
  if (pool.address.IsV4()) {
    text = "v4-" + pool.address.ToString();
    std::replace(text.begin(), text.end(), '.', '-');
  } else {
    text = "v6-";
    for (std::size_t i = 0; i < pool.address.Size(); ++i) text += Hex(pool.address.Data()[i], 2);
  }
  return text + "-" + std::to_string(pool.length);
}

std::optional<IpAddress> ParseHexAddress(const std::string& text) {
  std::array<std::uint8_t, 16> bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = ParseHex(text.substr(2 * i, 2));
    if (!byte) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(*byte);
  }
  return IpAddress::FromBytes(bytes.data(), bytes.size());
}

std::optional<IpPrefix> ParsePoolName(const std::vector<std::string>& words) {
  std::optional<IpAddress> address;
  if (words.size() == 6 && words[0] == "v4") {
    address = IpAddress::Parse(words[1] + "." + words[2] + "." + words[3] + "." + words[4]);
  } else if (words.size() == 3 && words[0] == "v6") {
    address = ParseHexAddress(words[1]);
  }
  const auto length = ParseInt(words.back());
  if (!address || !length || *length < 0 || *length > address->Bits()) return std::nullopt;
  return IpPrefix{*address, static_cast<int>(*length)};
}

// A DNS subdomain, as Kubernetes requires of node names.
bool IsObjectName(const std::string& name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  const auto is_end = [](char c) { return c != '-' && c != '.'; };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_good) &&
         is_end(name.front()) && is_end(name.back());
}

std::optional<ipam::LeaseKey> ParseIndexName(const std::string& name) {
  if (!name.starts_with(kIndexName)) return std::nullopt;
  const auto index = ParseInt(name.substr(kIndexName.size()));
  if (!index || *index < 0 || name != std::string(kIndexName) + std::to_string(*index)) return std::nullopt;
  return ipam::LeaseKey::Index(static_cast<std::uint64_t>(*index));
}

}  // namespace

Result<std::string> KubeNameOf(const ipam::LeaseKey& key) {
  if (key.kind == ipam::LeaseKey::Kind::kNode) {
    if (IsObjectName(key.node)) return key.node;
    return Fail(ErrorCode::kInvalid, "'" + key.node + "' is not a valid name of a Kubernetes node",
                "write the node's Kubernetes name into /etc/railhead/node-name");
  }
  if (key.kind == ipam::LeaseKey::Kind::kIndex) return std::string(kIndexName) + std::to_string(key.index);
  return RH_TRY(KubePoolName(key.pool)) + "-" + Hex(key.index, kIndexDigits);
}

std::optional<ipam::LeaseKey> ParseKubeName(ipam::LeaseKey::Kind kind, const std::string& name) {
  if (kind == ipam::LeaseKey::Kind::kNode) {
    if (!IsObjectName(name)) return std::nullopt;
    return ipam::LeaseKey::Node(name);
  }
  if (kind == ipam::LeaseKey::Kind::kIndex) return ParseIndexName(name);
  std::vector<std::string> words = Split(name, '-');
  const auto index = ParseHex(words.back());
  words.pop_back();
  if (!index || words.empty()) return std::nullopt;
  const auto pool = ParsePoolName(words);
  if (!pool) return std::nullopt;
  ipam::LeaseKey key = ipam::LeaseKey::Block(pool->ToString(), *index);
  // Each key has exactly one name: another spelling is refused.
  if (const auto again = KubeNameOf(key); !again || *again != name) return std::nullopt;
  return key;
}

Result<std::string> KubePoolName(const std::string& pool) {
  const auto prefix = ParsePool(pool);
  if (!prefix) return Fail(ErrorCode::kInvalid, "'" + pool + "' is not a subnet, but a pool must be one");
  return PoolName(*prefix);
}

std::string KubeContinueAt(const std::string& start) {
  const nlohmann::json token = {{"v", "meta.k8s.io/v1"}, {"rv", -1}, {"start", start}};
  std::string text = http::EncodeBase64(token.dump());
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

namespace {

using Json = nlohmann::json;
using Kind = ipam::LeaseKey::Kind;

constexpr const char* kApiVersion = "railhead.io/v1alpha1";
constexpr const char* kGroupPath = "/apis/railhead.io/v1alpha1/";
constexpr char kRevisionSeparator = '/';

struct ObjectNames {
  const char* resource;
  const char* kind;
};

ObjectNames NamesOf(Kind kind) {
  if (kind == Kind::kIndex) return {"nodeindices", "NodeIndex"};
  return kind == Kind::kBlock ? ObjectNames{"addressblocks", "AddressBlock"}
                              : ObjectNames{"nodeaddresses", "NodeAddresses"};
}

std::string ResourcePath(Kind kind) {
  return std::string(kGroupPath) + NamesOf(kind).resource;
}

Error MalformedObject(const std::string& why) {
  return {ErrorCode::kMalformed, "the Kubernetes API's answer: " + why,
          "see that manifests/components/kubernetes-store of this version is applied, and that nothing else "
          "writes its "
          "resources",
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

Result<Revision> ParseRevision(const ipam::LeaseEntry& seen) {
  const std::size_t at = seen.revision.find(kRevisionSeparator);
  if (at == std::string::npos) {
    return Fail(ErrorCode::kInvalid, "'" + seen.revision + "' is not a revision of the Kubernetes API");
  }
  return Revision{seen.revision.substr(0, at), seen.revision.substr(at + 1)};
}

// nullopt: of a name that is no index. It claims none.
Result<std::optional<ipam::LeaseEntry>> ParseObject(Kind kind, JsonReader object) {
  ipam::LeaseEntry entry;
  std::string name;
  if (auto metadata = object.Object("metadata")) {
    name = metadata->RequiredString("name");
    entry.revision =
        metadata->RequiredString("uid") + kRevisionSeparator + metadata->RequiredString("resourceVersion");
  }
  const Json* spec = object.Raw("spec");
  if (!object.status()) return Fail(MalformedObject(object.status().error().message));
  auto key = ParseKubeName(kind, name);
  if (!key && kind == Kind::kIndex) return std::nullopt;
  if (!key) return Fail(MalformedObject("'" + name + "' is not a name that Railhead gives"));
  // The claim of an index counts by its name, even if nobody can read it.
  const bool is_there = spec != nullptr && (spec->is_object() || kind == Kind::kIndex);
  if (!is_there && kind != Kind::kIndex) return Fail(MalformedObject("'" + name + "' has no spec"));
  entry.key = std::move(*key);
  entry.value = is_there ? Dump(*spec) : "null";
  return entry;
}

// The first name that sorts behind `name`.
std::string After(const std::string& name) {
  return name + std::string(1, '\0');
}

class KubeStore : public ipam::ClusterStore {
 public:
  KubeStore(const KubeAccess& access, std::chrono::milliseconds timeout) : api_(access, timeout) {}

  Result<std::optional<ipam::LeaseEntry>> Get(const ipam::LeaseKey& key) override {
    const std::string name = RH_TRY(KubeNameOf(key));
    const KubeAnswer answer = RH_TRY_WRAP(api_.Call("GET", PathOf(key.kind, name)), "reading " + name);
    if (answer.status == KubeAnswer::Status::kNotFound) return std::nullopt;
    if (answer.status == KubeAnswer::Status::kExpired)
      return Fail(MalformedObject("an object that is too old"));
    auto entry = RH_TRY(ParseObject(key.kind, answer.document.Root()));
    if (!entry || entry->key != key) return Fail(MalformedObject("it is another object than " + name));
    return entry;
  }

  Result<ipam::LeaseEntry> Create(const ipam::LeaseKey& key, const std::string& value) override {
    const std::string name = RH_TRY(KubeNameOf(key));
    const Json object = RH_TRY(Object(key, name, value));
    return WithContext(Change("POST", ResourcePath(key.kind), key, object), "creating " + name);
  }

  Result<ipam::LeaseEntry> Update(const ipam::LeaseEntry& seen, const std::string& value) override {
    const std::string name = RH_TRY(KubeNameOf(seen.key));
    const Revision revision = RH_TRY(ParseRevision(seen));
    Json object = RH_TRY(Object(seen.key, name, value));
    object["metadata"]["uid"] = revision.uid;
    object["metadata"]["resourceVersion"] = revision.version;
    return WithContext(Change("PUT", PathOf(seen.key.kind, name), seen.key, object), "changing " + name);
  }

  Result<void> Remove(const ipam::LeaseEntry& seen) override {
    const std::string name = RH_TRY(KubeNameOf(seen.key));
    const Revision revision = RH_TRY(ParseRevision(seen));
    const Json options = {{"apiVersion", "v1"},
                          {"kind", "DeleteOptions"},
                          {"preconditions", {{"uid", revision.uid}, {"resourceVersion", revision.version}}}};
    const KubeAnswer answer =
        RH_TRY_WRAP(api_.Call("DELETE", PathOf(seen.key.kind, name), options.dump()), "removing " + name);
    if (answer.status != KubeAnswer::Status::kDone)
      return Fail(Conflict("removing " + name + ": it is gone"));
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

  Result<std::vector<ipam::LeaseEntry>> Blocks(const std::string& pool, std::uint64_t from,
                                               std::size_t limit) override {
    const std::string first = RH_TRY(KubeNameOf(ipam::LeaseKey::Block(pool, from)));
    auto listed = RH_TRY_WRAP(List(Kind::kBlock, first, limit), "listing the blocks of " + pool);
    // Blocks of other pools follow the pool's own.
    std::erase_if(listed, [&](const ipam::LeaseEntry& entry) { return entry.key.pool != pool; });
    return listed;
  }

  Result<std::vector<ipam::LeaseEntry>> Nodes(const std::string& after, std::size_t limit) override {
    return WithContext(List(Kind::kNode, after.empty() ? "" : After(after), limit), "listing nodes");
  }

  [[nodiscard]] std::uint64_t calls() const override { return api_.sent(); }

 protected:
  // Objects whose names sort from `start` on.
  Result<std::vector<ipam::LeaseEntry>> List(Kind kind, const std::string& start, std::size_t limit);
  KubeApi& api() { return api_; }

 private:
  static std::string PathOf(Kind kind, const std::string& name) { return ResourcePath(kind) + "/" + name; }

  static Result<Json> Object(const ipam::LeaseKey& key, const std::string& name, const std::string& value) {
    const auto spec = RH_TRY(JsonDocument::Parse(value, "the value of " + name));
    if (!spec.json().is_object())
      return Fail(ErrorCode::kInvalid, "the value of " + name + " is not an object");
    Json object = {{"apiVersion", kApiVersion},
                   {"kind", NamesOf(key.kind).kind},
                   {"metadata", {{"name", name}}},
                   {"spec", spec.json()}};
    if (key.kind == Kind::kBlock) {
      const std::string pool = RH_TRY(KubePoolName(key.pool));
      object["metadata"]["labels"] = {{kKubePoolLabel, pool}};
    }
    return object;
  }

  Result<ipam::LeaseEntry> Change(const std::string& method, const std::string& path,
                                  const ipam::LeaseKey& key, const Json& object) {
    const KubeAnswer answer = RH_TRY(api_.Call(method, path, Dump(object)));
    if (answer.status != KubeAnswer::Status::kDone) return Fail(Conflict("it is gone"));
    auto entry = RH_TRY(ParseObject(key.kind, answer.document.Root()));
    if (!entry || entry->key != key) return Fail(MalformedObject("it is another object than was sent"));
    if (entry->value != Dump(object["spec"])) {
      return Fail(MalformedObject("the server has kept something else than was sent: " + entry->value));
    }
    return *std::move(entry);
  }

  KubeApi api_;
};

Result<std::vector<ipam::LeaseEntry>> KubeStore::List(Kind kind, const std::string& start,
                                                      std::size_t limit) {
  std::vector<ipam::LeaseEntry> entries;
  std::string token = start.empty() ? "" : KubeContinueAt(start);
  // A server may answer with fewer entries than it has, and with a token for the rest.
  while (entries.size() < limit) {
    std::string target = ResourcePath(kind) + "?limit=" + std::to_string(limit - entries.size());
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
      if (auto entry = RH_TRY(ParseObject(kind, std::move(item)))) entries.push_back(*std::move(entry));
    }
    if (!reader.status()) return Fail(MalformedObject(reader.status().error().message));
    if (entries.size() > limit) return Fail(MalformedObject("it has more objects than were asked for"));
    if (next.empty()) break;
    token = std::move(next);
  }
  return entries;
}

// The claims of indices, beside the records of leasing.
class KubeIndexStore : public IndexStore, private KubeStore {
 public:
  KubeIndexStore(const KubeAccess& access, std::chrono::milliseconds timeout) : KubeStore(access, timeout) {}

  Result<std::optional<ClusterNode>> Node(const std::string& name) override {
    const std::string what = "reading node " + name;
    const KubeAnswer answer = RH_TRY_WRAP(api().Call("GET", "/api/v1/nodes/" + EscapeForQuery(name)), what);
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

  Result<std::vector<ipam::LeaseEntry>> Claims(const std::optional<std::uint64_t>& after,
                                               std::size_t limit) override {
    const std::string start = after ? After(RH_TRY(KubeNameOf(ipam::LeaseKey::Index(*after)))) : "";
    return WithContext(List(Kind::kIndex, start, limit), "listing the claims of indices");
  }

  ipam::ClusterStore& records() override { return *this; }
};

}  // namespace

std::unique_ptr<ipam::ClusterStore> MakeKubeStore(const KubeAccess& access,
                                                  std::chrono::milliseconds timeout) {
  return std::make_unique<KubeStore>(access, timeout);
}

std::unique_ptr<IndexStore> MakeKubeIndexStore(const KubeAccess& access, std::chrono::milliseconds timeout) {
  return std::make_unique<KubeIndexStore>(access, timeout);
}

}  // namespace railhead::address_leasing
