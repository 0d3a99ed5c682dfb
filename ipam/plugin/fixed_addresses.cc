#include "ipam/plugin/fixed_addresses.h"

#include <utility>

#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

std::optional<FixedAddress> ParseFixedAddress(const std::string& text) {
  if (const auto address = IpAddress::Parse(text); address) return FixedAddress{*address, {}};
  if (const auto prefix = IpPrefix::Parse(text); prefix) return FixedAddress{prefix->address, prefix->length};
  return std::nullopt;
}

std::vector<FixedAddress> ParseFixedAddresses(JsonReader& reader, const std::string& key,
                                              const std::vector<std::string>& texts) {
  std::vector<FixedAddress> requests;
  for (const std::string& text : texts) {
    const auto request = ParseFixedAddress(text);
    if (request) {
      requests.push_back(*request);
    } else {
      reader.Fail(key, "'" + text + "' is not an IP address", "write ADDRESS or ADDRESS/LENGTH");
    }
  }
  return requests;
}

std::vector<FixedAddress> ReadIps(JsonReader& reader) {
  return ParseFixedAddresses(reader, "ips", reader.Strings("ips").value_or(std::vector<std::string>{}));
}

}  // namespace

std::vector<FixedAddress> ReadFixedAddresses(JsonReader& root, const CniArgs& args) {
  std::vector<FixedAddress> requests;
  if (const auto text = args.find("IP"); text != args.end() && !text->second.empty()) {
    requests = ParseFixedAddresses(root, "CNI_ARGS IP", Split(text->second, ','));
  }
  if (auto in_config = root.Object("args"); in_config) {
    if (auto cni = in_config->Object("cni"); cni) {
      if (auto ips = ReadIps(*cni); !ips.empty()) requests = std::move(ips);
    }
  }
  if (auto runtime = root.Object("runtimeConfig"); runtime) {
    if (auto ips = ReadIps(*runtime); !ips.empty()) requests = std::move(ips);
  }
  return requests;
}

}  // namespace railhead::ipam
