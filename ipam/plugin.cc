#include "ipam/plugin.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cni/skel/json_reader.h"
#include "cni/skel/result.h"
#include "ipam/config.h"
#include "ipam/store.h"

namespace railhead {
namespace {

AddressOwner OwnerOf(const CniRequest& request) {
  return {request.network, request.container_id, request.ifname};
}

std::string NameOf(const CniRequest& request) {
  return "container " + request.container_id + ", interface " + request.ifname + ", network " +
         request.network;
}

// What the ADD before this CHECK answered; nullopt: not told.
Result<std::optional<CniResult>> PreviousResult(const CniRequest& request) {
  const auto document = RH_TRY(JsonDocument::Parse(request.config, "network configuration"));
  JsonReader reader = document.Root();
  const nlohmann::json* previous = reader.Raw("prevResult");
  RH_TRY(reader.status());
  if (previous == nullptr) return std::nullopt;
  return RH_TRY(ParseCniResult(previous->dump(), "network configuration: /prevResult"));
}

}  // namespace

Result<std::string> IpamPlugin::Add(const CniRequest& request) {
  const IpamPlan plan = RH_TRY(ResolveIpam(request.config, root_));
  const ClockReading now = RH_TRY(ReadClocks(root_));
  AddressStore store = RH_TRY(AddressStore::Open(root_));
  const AddressRecord held = RH_TRY(store.Allocate(OwnerOf(request), plan.pool, now));

  CniResult result;
  CniIp ip;
  ip.address = {held.address, plan.pool.ranges.subnet().length};
  ip.gateway = plan.gateway;
  result.ips.push_back(ip);
  result.routes = plan.routes;
  return CniResultJson(result, request.cni_version);
}

Result<void> IpamPlugin::Del(const CniRequest& request) {
  auto store = RH_TRY(AddressStore::OpenExisting(root_));
  if (!store) return {};
  const ClockReading now = RH_TRY(ReadClocks(root_));
  RH_TRY(store->Release(OwnerOf(request), now));
  return {};
}

Result<void> IpamPlugin::Check(const CniRequest& request) {
  const IpamPlan plan = RH_TRY(ResolveIpam(request.config, root_));
  const auto previous = RH_TRY(PreviousResult(request));
  std::vector<AddressRecord> records;
  if (const auto store = RH_TRY(AddressStore::OpenExisting(root_)); store) {
    records = RH_TRY(store->Find(OwnerOf(request)));
  }
  const auto held = std::find_if(records.begin(), records.end(), [&](const AddressRecord& record) {
    return record.pool == plan.pool.name && plan.pool.ranges.Contains(record.address);
  });
  if (held == records.end()) {
    return Fail(ErrorCode::kNotFound, "no address of " + plan.pool.name + " is held by " + NameOf(request),
                "delete the container's network and add it again");
  }
  const bool told =
      !previous || std::any_of(previous->ips.begin(), previous->ips.end(),
                               [&](const CniIp& ip) { return ip.address.address == held->address; });
  if (!told) {
    return Fail(
        ErrorCode::kConflict,
        held->address.ToString() + " is held by " + NameOf(request) + ", but prevResult does not have it",
        "delete the container's network and add it again");
  }
  return {};
}

Result<void> IpamPlugin::Gc(const CniRequest& request, const std::vector<ValidAttachment>&) {
  return Fail(ErrorCode::kUnsupported, "GC of network " + request.network);
}

Result<void> IpamPlugin::Status(const CniRequest& request) {
  return Fail(ErrorCode::kUnsupported, "STATUS of network " + request.network);
}

}  // namespace railhead
