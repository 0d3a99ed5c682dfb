#include "cni/attachment/ipam_plan.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace railhead::attachment {
namespace {

// The request's own configuration with the IPAM type filled in.
nlohmann::json WithIpamType(const CniRequest& request, const std::string& type) {
  auto json = nlohmann::json::parse(request.config, nullptr, false);
  auto& ipam = json["ipam"];
  if (!ipam.is_object()) ipam = nlohmann::json::object();
  ipam["type"] = type;
  return json;
}

// Whether `ipam` names the addresses: with keys of railhead-ipam, host-local or whereabouts.
bool NamesSubnet(const nlohmann::json& ipam) {
  for (const char* key : {"subnet", "ranges", "range", "ipRanges"}) {
    if (ipam.contains(key)) return true;
  }
  return false;
}

// railhead-ipam gives the only address of a node's network again to the interface that had it last.
std::optional<MacAddress> MacForIpam(const DevicePlan& device) {
  if (!device.rail || !device.rail->node_subnet) return std::nullopt;
  const MacAddress mac = device.record.requested.vf.mac.value_or(device.link.mac);
  return mac.IsZero() ? std::nullopt : std::optional(mac);
}

IpamRun RunForOne(const CniRequest& request, const AttachPlan& plan, std::size_t index,
                  const std::string& ifname) {
  auto json = WithIpamType(request, plan.ipam_type);
  auto& ipam = json["ipam"];
  const AttachedDevice& device = plan.devices[index].record;
  if (plan.ipam_type == kOwnIpam && !device.rail.empty() && !ipam.contains("rail") && !NamesSubnet(ipam)) {
    ipam["rail"] = device.rail;
  }
  // The deterministic policy computes the address from it.
  if (plan.ipam_type == kOwnIpam && device.vf >= 0 && ipam.contains("rail")) ipam["vf"] = device.vf;
  const auto mac = MacForIpam(plan.devices[index]);
  if (plan.ipam_type == kOwnIpam && mac && ipam.contains("rail")) ipam["mac"] = mac->ToString();
  return {{ifname, json.dump()}, {index}};
}

IpamRun RunForAll(const CniRequest& request, const AttachPlan& plan) {
  IpamRun run;
  auto json = WithIpamType(request, plan.ipam_type);
  auto& links = json["ipam"]["links"] = nlohmann::json::array();
  for (std::size_t i = 0; i < plan.devices.size(); ++i) {
    const auto& rail = plan.devices[i].rail;
    if (!rail || !rail->subnet) continue;
    const AttachedDevice& device = plan.devices[i].record;
    links.push_back({{"ifname", device.pod_name}, {"rail", device.rail}});
    if (device.vf >= 0) links.back()["vf"] = device.vf;
    if (const auto mac = MacForIpam(plan.devices[i])) links.back()["mac"] = mac->ToString();
    run.devices.push_back(i);
  }
  run.call = {request.ifname, json.dump()};
  return run;
}

std::string IpamTypeOf(const AttachPlan& plan) {
  if (plan.config.has_ipam) return plan.config.ipam_type;
  const bool any_subnet = std::ranges::any_of(
      plan.devices, [](const DevicePlan& device) { return device.rail && device.rail->subnet; });
  return any_subnet ? kOwnIpam : "";
}

std::vector<IpamRun> IpamRuns(const CniRequest& request, const AttachPlan& plan) {
  if (plan.ipam_type.empty()) return {};
  if (plan.ipam_type == kOwnIpam) {
    if (plan.devices.size() > 1) return {RunForAll(request, plan)};
    return {RunForOne(request, plan, 0, request.ifname)};
  }
  std::vector<IpamRun> runs;
  for (std::size_t i = 0; i < plan.devices.size(); ++i) {
    runs.push_back(RunForOne(request, plan, i, plan.devices[i].record.pod_name));
  }
  return runs;
}

}  // namespace

void PlanIpam(const CniRequest& request, AttachPlan& plan) {
  plan.ipam_type = IpamTypeOf(plan);
  plan.ipam_runs = IpamRuns(request, plan);
}

std::string IpamConfigWithoutPlan(const CniRequest& request, const std::string& type,
                                  const PluginConfig& config) {
  auto json = WithIpamType(request, type);
  if (type == kOwnIpam && config.rail && !NamesSubnet(json["ipam"])) json["ipam"]["rail"] = *config.rail;
  return json.dump();
}

}  // namespace railhead::attachment
