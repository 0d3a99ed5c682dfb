#include "ipam/plugin/fixed_addresses.h"

#include <utility>

#include "ipam/plugin/ipam_config.h"
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

bool InSubnet(const PoolChoice& choice, const FixedAddress& request) {
  return choice.pool.ranges.subnet().Contains(request.address);
}

std::string DisplayName(const FixedAddress& request) {
  return "requested address " + request.address.ToString();
}

Result<void> CheckLength(const PoolChoice& choice, const FixedAddress& request) {
  const IpPrefix& subnet = choice.pool.ranges.subnet();
  if (!request.length || *request.length == subnet.length) return {};
  return Fail(ErrorCode::kInvalid,
              DisplayName(request) + "/" + std::to_string(*request.length) +
                  " is of another prefix length than " + "its subnet " + subnet.ToString(),
              "write " + request.address.ToString());
}

// Why no pool has the address; `near` is the plan whose subnet contains it.
Error Refusal(const std::vector<AddressPlan>& plans, const AddressPlan* near, const FixedAddress& request) {
  if (near == nullptr) {
    std::vector<std::string> subnets;
    for (const AddressPlan& plan : plans) {
      for (const PoolChoice& choice : plan.choices) subnets.push_back(choice.pool.name);
    }
    return {ErrorCode::kInvalid, DisplayName(request) + " is in none of the subnets of this attachment",
            "it has: " + Join(subnets, ", "), 0};
  }
  if (near->deterministic && near->fixed_address) {
    return {ErrorCode::kInvalid,
            DisplayName(request) + ": by the fabric's policy 'deterministic' this VF's is " +
                near->fixed_address->ToString(),
            "ask for that one or for none", 0};
  }
  if (near->fixed_address) {
    return {
        ErrorCode::kInvalid,
        DisplayName(request) + ": " + near->fixed_address->ToString() + " is asked for in its place already",
        "ask for as many addresses of a subnet as the attachment has links in it", 0};
  }
  std::vector<std::string> ranges;
  for (const PoolChoice& choice : near->choices) ranges.push_back(choice.pool.ranges.ToString());
  return {ErrorCode::kInvalid,
          DisplayName(request) + " is in subnet " + near->choices.front().pool.name +
              ", but not one that may be given: gateway, excluded, or of another node",
          "this node gives " + Join(ranges, ", "), 0};
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

Result<void> AssignFixedAddresses(const std::vector<FixedAddress>& requests,
                                  std::vector<AddressPlan>& plans) {
  for (const FixedAddress& request : requests) {
    const AddressPlan* near = nullptr;
    AddressPlan* taker = nullptr;
    for (AddressPlan& plan : plans) {
      for (const PoolChoice& choice : plan.choices) {
        if (!InSubnet(choice, request)) continue;
        RH_TRY(CheckLength(choice, request));
        if (near == nullptr) near = &plan;
        // The fabric's policy has already chosen this address for the plan.
        if (plan.deterministic && plan.fixed_address == request.address) taker = &plan;
        if (!plan.fixed_address && taker == nullptr && choice.pool.ranges.Contains(request.address))
          taker = &plan;
      }
    }
    if (taker == nullptr) return Fail(Refusal(plans, near, request));
    taker->fixed_address = request.address;
  }
  return {};
}

}  // namespace railhead::ipam
