#include "ipam/plugin/requests.h"

#include <algorithm>

#include "ipam/plugin/ipam_config.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

std::optional<AddressRequest> ParseRequest(const std::string& text) {
  if (const auto address = IpAddress::Parse(text); address) return AddressRequest{*address, {}};
  if (const auto prefix = IpPrefix::Parse(text); prefix)
    return AddressRequest{prefix->address, prefix->length};
  return std::nullopt;
}

std::vector<AddressRequest> Parsed(JsonReader& reader, const std::string& key,
                                   const std::vector<std::string>& texts) {
  std::vector<AddressRequest> requests;
  for (const std::string& text : texts) {
    const auto request = ParseRequest(text);
    if (request) {
      requests.push_back(*request);
    } else {
      reader.Fail(key, "'" + text + "' is not an IP address", "write ADDRESS or ADDRESS/LENGTH");
    }
  }
  return requests;
}

std::vector<AddressRequest> ReadIps(JsonReader& reader) {
  return Parsed(reader, "ips", reader.Strings("ips").value_or(std::vector<std::string>{}));
}

bool InSubnet(const PoolChoice& choice, const AddressRequest& request) {
  return choice.pool.ranges.subnet().Contains(request.address);
}

std::string Shown(const AddressRequest& request) {
  return "requested address " + request.address.ToString();
}

Result<void> CheckLength(const PoolChoice& choice, const AddressRequest& request) {
  const IpPrefix& subnet = choice.pool.ranges.subnet();
  if (!request.length || *request.length == subnet.length) return {};
  return Fail(ErrorCode::kInvalid,
              Shown(request) + "/" + std::to_string(*request.length) + " is of another prefix length than " +
                  "its subnet " + subnet.ToString(),
              "write " + request.address.ToString());
}

// Why nothing has the address: of the plans, `near` has it in its subnet.
Error Refusal(const std::vector<AddressPlan>& plans, const AddressPlan* near, const AddressRequest& request) {
  if (near == nullptr) {
    std::vector<std::string> subnets;
    for (const AddressPlan& plan : plans) {
      for (const PoolChoice& choice : plan.choices) subnets.push_back(choice.pool.name);
    }
    return {ErrorCode::kInvalid, Shown(request) + " is in none of the subnets of this attachment",
            "it has: " + Join(subnets, ", "), 0};
  }
  if (near->deterministic && near->wanted) {
    return {
        ErrorCode::kInvalid,
        Shown(request) + ": by the fabric's policy 'deterministic' this VF's is " + near->wanted->ToString(),
        "ask for that one or for none", 0};
  }
  if (near->wanted) {
    return {ErrorCode::kInvalid,
            Shown(request) + ": " + near->wanted->ToString() + " is asked for in its place already",
            "ask for as many addresses of a subnet as the attachment has links in it", 0};
  }
  std::vector<std::string> ranges;
  for (const PoolChoice& choice : near->choices) ranges.push_back(choice.pool.ranges.ToString());
  return {ErrorCode::kInvalid,
          Shown(request) + " is in subnet " + near->choices.front().pool.name +
              ", but not one that may be given: gateway, excluded, or of another node",
          "this node gives " + Join(ranges, ", "), 0};
}

}  // namespace

std::vector<AddressRequest> ReadAddressRequests(JsonReader& root, const CniArgs& args) {
  std::vector<AddressRequest> requests;
  if (const auto text = args.find("IP"); text != args.end() && !text->second.empty()) {
    requests = Parsed(root, "CNI_ARGS IP", Split(text->second, ','));
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

Result<void> AssignRequests(const std::vector<AddressRequest>& requests, std::vector<AddressPlan>& plans) {
  for (const AddressRequest& request : requests) {
    const AddressPlan* near = nullptr;
    AddressPlan* taker = nullptr;
    for (AddressPlan& plan : plans) {
      for (const PoolChoice& choice : plan.choices) {
        if (!InSubnet(choice, request)) continue;
        RH_TRY(CheckLength(choice, request));
        if (near == nullptr) near = &plan;
        // By the fabric's policy it is that one anyway.
        if (plan.deterministic && plan.wanted == request.address) taker = &plan;
        if (!plan.wanted && taker == nullptr && choice.pool.ranges.Contains(request.address)) taker = &plan;
      }
    }
    if (taker == nullptr) return Fail(Refusal(plans, near, request));
    taker->wanted = request.address;
  }
  return {};
}

}  // namespace railhead
