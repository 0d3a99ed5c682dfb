#include "deviceplugin/services/address_leasing/etcd_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "deviceplugin/services/address_leasing/etcd_api.h"
#include "deviceplugin/support/http/base64.h"
#include "netns/base/ip_address.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBlocks = "/v1/blocks/";
constexpr std::string_view kNodes = "/v1/nodes/";
constexpr std::size_t kKeyDigits = 20;  // of 2^64 - 1

Result<std::string> PoolKey(const std::string& pool) {
  const auto prefix = IpPrefix::Parse(pool);
  if (!prefix || prefix->ToString() != pool || prefix->Network() != *prefix) {
    return Fail(ErrorCode::kInvalid, "'" + pool + "' is no subnet, as a pool has to be");
  }
  std::string text = pool;
  std::replace(text.begin(), text.end(), '/', '_');
  return std::string(kBlocks) + text + "/";
}

std::string Digits(std::uint64_t index) {
  const std::string digits = std::to_string(index);
  return std::string(kKeyDigits - digits.size(), '0') + digits;
}

// Behind every key that begins with `prefix`, which ends with '/'.
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

class EtcdStore : public ClusterStore {
 public:
  EtcdStore(const Root& root, const EtcdConfig& config) : api_(root, config), prefix_(config.prefix) {}

  Result<std::optional<LeaseEntry>> Get(const LeaseKey& key) override {
    const std::string bytes = RH_TRY(Key(key));
    auto found = RH_TRY_WRAP(Range(Json{{"key", EncodeBase64(bytes)}}, 1), "reading " + bytes);
    if (found.empty()) return std::nullopt;
    if (found[0].key != key) return Fail(MalformedEtcd("it has another key than " + bytes));
    return std::move(found[0]);
  }

  Result<LeaseEntry> Create(const LeaseKey& key, const std::string& value) override {
    const std::string bytes = RH_TRY(Key(key));
    const Json compare = {{"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}};
    auto revision =
        RH_TRY_WRAP(Change(bytes, compare, Put(bytes, value), "it is there already"), "creating " + bytes);
    return LeaseEntry{key, value, std::move(revision)};
  }

  Result<LeaseEntry> Update(const LeaseEntry& seen, const std::string& value) override {
    const std::string bytes = RH_TRY(Key(seen.key));
    auto revision = RH_TRY_WRAP(Change(bytes, Seen(seen), Put(bytes, value), "it is not as it was seen"),
                                "changing " + bytes);
    return LeaseEntry{seen.key, value, std::move(revision)};
  }

  Result<void> Remove(const LeaseEntry& seen) override {
    const std::string bytes = RH_TRY(Key(seen.key));
    const Json remove = {{"request_delete_range", {{"key", EncodeBase64(bytes)}}}};
    RH_TRY_WRAP(Change(bytes, Seen(seen), remove, "it is not as it was seen"), "removing " + bytes);
    return {};
  }

  Result<std::vector<LeaseEntry>> Blocks(const std::string& pool, std::uint64_t from,
                                         std::size_t limit) override {
    const std::string all = prefix_ + RH_TRY(PoolKey(pool));
    return WithContext(
        Range({{"key", EncodeBase64(all + Digits(from))}, {"range_end", EncodeBase64(EndOf(all))}}, limit),
        "listing the blocks of " + pool);
  }

  Result<std::vector<LeaseEntry>> Nodes(const std::string& after, std::size_t limit) override {
    const std::string all = prefix_ + std::string(kNodes);
    const std::string first = after.empty() ? all : all + after + std::string(1, '\0');
    return WithContext(Range({{"key", EncodeBase64(first)}, {"range_end", EncodeBase64(EndOf(all))}}, limit),
                       "listing nodes");
  }

  [[nodiscard]] std::uint64_t calls() const override { return api_.sent(); }

 private:
  [[nodiscard]] Result<std::string> Key(const LeaseKey& key) const {
    return prefix_ + RH_TRY(EtcdKeyOf(key));
  }

  static Json Put(const std::string& bytes, const std::string& value) {
    return {{"request_put", {{"key", EncodeBase64(bytes)}, {"value", EncodeBase64(value)}}}};
  }
  static Json Seen(const LeaseEntry& seen) {
    return {{"target", "MOD"}, {"result", "EQUAL"}, {"mod_revision", seen.revision}};
  }

  // The key's revision afterwards; kConflict saying `otherwise` when the comparison fails.
  Result<std::string> Change(const std::string& bytes, Json compare, const Json& request,
                             const std::string& otherwise) {
    compare["key"] = EncodeBase64(bytes);
    const Json body = {{"compare", Json::array({std::move(compare)})}, {"success", Json::array({request})}};
    const auto document = RH_TRY(api_.Call("/v3/kv/txn", body.dump(), false));
    JsonReader reader = document.Root();
    // What is false or nothing is left out.
    const bool succeeded = reader.Bool("succeeded").value_or(false);
    std::string revision;
    if (auto header = reader.Object("header")) revision = header->RequiredString("revision");
    if (!reader.status()) return Fail(MalformedEtcd(reader.status().error().message));
    if (revision.empty()) return Fail(MalformedEtcd("it has no revision"));
    if (!succeeded) return Fail(ErrorCode::kConflict, otherwise);
    return revision;
  }

  Result<std::vector<LeaseEntry>> Range(Json body, std::size_t limit) {
    std::vector<LeaseEntry> entries;
    if (limit == 0) return entries;  // etcd would take it for "all"
    body["limit"] = std::to_string(limit);
    const auto document = RH_TRY(api_.Call("/v3/kv/range", body.dump(), true));
    JsonReader reader = document.Root();
    // Without its header it is the answer of something else, and not of no entries.
    if (!reader.Object("header")) return Fail(MalformedEtcd("it has no header"));
    for (JsonReader& one : reader.Objects("kvs")) {
      const auto key = DecodeBase64(one.RequiredString("key"));
      const auto value = DecodeBase64(one.String("value").value_or(""));
      const std::string revision = one.RequiredString("mod_revision");
      if (!one.status()) break;
      auto parsed = key ? ParseKey(*key) : std::nullopt;
      if (!parsed || !value)
        return Fail(MalformedEtcd("'" + key.value_or("") + "' is no key of ours, or its value no base64"));
      entries.push_back({std::move(*parsed), *value, revision});
    }
    if (!reader.status()) return Fail(MalformedEtcd(reader.status().error().message));
    if (entries.size() > limit) return Fail(MalformedEtcd("it has more entries than were asked for"));
    return entries;
  }

  [[nodiscard]] std::optional<LeaseKey> ParseKey(std::string_view bytes) const {
    if (!bytes.starts_with(prefix_)) return std::nullopt;
    bytes.remove_prefix(prefix_.size());
    if (bytes.starts_with(kNodes) && bytes.size() > kNodes.size()) {
      return LeaseKey::Node(std::string(bytes.substr(kNodes.size())));
    }
    if (!bytes.starts_with(kBlocks)) return std::nullopt;
    bytes.remove_prefix(kBlocks.size());
    const std::size_t slash = bytes.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto index = ParseDigits(bytes.substr(slash + 1));
    std::string pool(bytes.substr(0, slash));
    std::replace(pool.begin(), pool.end(), '_', '/');
    if (!index || !IpPrefix::Parse(pool)) return std::nullopt;
    return LeaseKey::Block(std::move(pool), *index);
  }

  EtcdApi api_;
  const std::string prefix_;
};

}  // namespace

Result<std::string> EtcdKeyOf(const LeaseKey& key) {
  if (key.kind == LeaseKey::Kind::kBlock) return RH_TRY(PoolKey(key.pool)) + Digits(key.index);
  if (key.node.empty() || key.node.find('/') != std::string::npos ||
      key.node.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "'" + key.node + "' is no node's name");
  }
  return std::string(kNodes) + key.node;
}

std::unique_ptr<ClusterStore> MakeEtcdStore(const Root& root, const EtcdConfig& config) {
  return std::make_unique<EtcdStore>(root, config);
}

}  // namespace railhead
