#include "deviceplugin/services/address_leasing/kube_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "deviceplugin/support/http/base64.h"
#include "netns/base/ip_address.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::size_t kIndexDigits = 16;
constexpr std::size_t kLongestName = 253;
constexpr std::string_view kHex = "0123456789abcdef";

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

// A DNS subdomain, as names of nodes are.
bool IsObjectName(const std::string& name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  const auto is_end = [](char c) { return c != '-' && c != '.'; };
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), is_good) &&
         is_end(name.front()) && is_end(name.back());
}

}  // namespace

Result<std::string> KubeNameOf(const LeaseKey& key) {
  if (key.kind == LeaseKey::Kind::kNode) {
    if (IsObjectName(key.node)) return key.node;
    return Fail(ErrorCode::kInvalid, "'" + key.node + "' is no name of a Kubernetes node",
                "write the node's Kubernetes name into /etc/railhead/node-name");
  }
  return RH_TRY(KubePoolName(key.pool)) + "-" + Hex(key.index, kIndexDigits);
}

std::optional<LeaseKey> ParseKubeName(LeaseKey::Kind kind, const std::string& name) {
  if (kind == LeaseKey::Kind::kNode) {
    if (!IsObjectName(name)) return std::nullopt;
    return LeaseKey::Node(name);
  }
  std::vector<std::string> words = Split(name, '-');
  const auto index = ParseHex(words.back());
  words.pop_back();
  if (!index || words.empty()) return std::nullopt;
  const auto pool = ParsePoolName(words);
  if (!pool) return std::nullopt;
  LeaseKey key = LeaseKey::Block(pool->ToString(), *index);
  // Another way of writing the same would be another name.
  if (const auto again = KubeNameOf(key); !again || *again != name) return std::nullopt;
  return key;
}

Result<std::string> KubePoolName(const std::string& pool) {
  const auto prefix = ParsePool(pool);
  if (!prefix) return Fail(ErrorCode::kInvalid, "'" + pool + "' is no subnet, as a pool has to be");
  return PoolName(*prefix);
}

std::string KubeContinueAt(const std::string& start) {
  const nlohmann::json token = {{"v", "meta.k8s.io/v1"}, {"rv", -1}, {"start", start}};
  std::string text = EncodeBase64(token.dump());
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

}  // namespace railhead
