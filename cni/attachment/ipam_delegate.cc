#include "cni/attachment/ipam_delegate.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cni/attachment/ipam_plan.h"
#include "cni/fabric/call_permissions.h"
#include "cni/protocol/delegate.h"

namespace railhead::attachment {
namespace {

CniRequest WithIfname(const CniRequest& request, const std::string& ifname) {
  CniRequest its = request;
  its.ifname = ifname;
  return its;
}

Result<void> AssignAnswer(const IpamRun& run, CniResult answer, std::vector<CniResult>& results) {
  if (run.devices.size() == 1) {
    results[run.devices.front()] = std::move(answer);
    return {};
  }
  for (const auto& ip : answer.ips) {
    const auto index = static_cast<std::size_t>(ip.interface.value_or(-1));
    if (!ip.interface || index >= run.devices.size()) {
      return Fail(ErrorCode::kInvalid, "address " + ip.address.ToString() + " belongs to none of the devices",
                  "install railhead-ipam and railhead of the same version");
    }
    results[run.devices[index]].ips.push_back(ip);
  }
  for (const std::size_t index : run.devices) results[index].dns = answer.dns;
  return {};
}

Result<void> RequireAddresses(const AttachPlan& plan, const IpamRun& run,
                              const std::vector<CniResult>& results) {
  for (const std::size_t index : run.devices) {
    if (!results[index].ips.empty()) continue;
    return Fail(
        ErrorCode::kInvalid,
        "IPAM plugin " + plan.ipam_type + " gave no address to " + plan.devices[index].record.pod_name,
        "check its configuration, or write \"ipam\": {} for none");
  }
  return {};
}

// Whether the error shows that the plugin assigned nothing: it is not installed, or does not support the
// configuration.
bool Misunderstands(ErrorCode refusal) {
  return refusal == ErrorCode::kNotFound || refusal == ErrorCode::kInvalid ||
         refusal == ErrorCode::kMalformed || refusal == ErrorCode::kUnsupported;
}

// Whether the release may go on without this plugin's DEL. A finished ADD has its addresses: then a plugin
// that is missing or refuses must be fixed first.
bool HoldsNothing(const JournalEntry& entry, const IpamCall& call, ErrorCode refusal) {
  return call.refused || (entry.phase != Phase::kDone && Misunderstands(refusal));
}

// The IPAM plugin of a network without a journal entry; empty: none.
std::string IpamTypeWithoutEntry(const PluginConfig& config) {
  return config.has_ipam ? config.ipam_type : kOwnIpam;
}

Result<void> ForwardToIpam(const CniRequest& request, const PluginConfig& config,
                           const std::string& command) {
  const std::string type = IpamTypeWithoutEntry(config);
  if (type.empty()) return {};
  const auto done = RunDelegate(request, {type, command, IpamConfigWithoutPlan(request, type, config)});
  // railhead-ipam was not configured, only assumed.
  const bool not_installed = !done && done.error().code == ErrorCode::kNotFound && !config.has_ipam;
  if (done || not_installed) return {};
  return Fail(done.error());
}

}  // namespace

Result<std::vector<CniResult>> IpamAdd(const CniRequest& request, const AttachPlan& plan,
                                       const std::vector<int>& locks, JournalEntry& entry) {
  std::vector<CniResult> results(plan.devices.size());
  for (std::size_t i = 0; i < plan.ipam_runs.size(); ++i) {
    const IpamRun& run = plan.ipam_runs[i];
    const DelegateCall call{plan.ipam_type, "ADD", run.call.config, locks};
    bool refused = false;
    const auto output = RunDelegate(WithIfname(request, run.call.ifname), call, &refused);
    if (!output) {
      entry.ipam_calls.resize(i + 1);
      entry.ipam_calls.back().refused = refused;
      return Fail(output.error());
    }
    CniResult answer = RH_TRY(ParseCniResult(*output, "result of " + plan.ipam_type));
    RH_TRY(AssignAnswer(run, std::move(answer), results));
    RH_TRY(RequireAddresses(plan, run, results));
  }
  return results;
}

bool ReportAddressesInUse(const std::vector<IpAddress>& addresses, const std::vector<IpAddress>& confirmed,
                          JournalEntry& entry) {
  if (entry.ipam_type != kOwnIpam || addresses.empty()) return false;
  nlohmann::json in_use = nlohmann::json::array();
  for (const IpAddress& address : addresses) in_use.push_back(address.ToString());
  nlohmann::json for_longer = nlohmann::json::array();
  for (const IpAddress& address : confirmed) for_longer.push_back(address.ToString());
  for (IpamCall& call : entry.ipam_calls) {
    auto config = nlohmann::json::parse(call.config, nullptr, false);
    config["ipam"]["inUse"] = in_use;
    if (!for_longer.empty()) config["ipam"]["inUseConfirmed"] = for_longer;
    call.config = config.dump();
  }
  return true;
}

Result<void> IpamRelease(const CniRequest& request, const JournalEntry& entry) {
  CniRequest its = request;
  its.network = entry.key.network;
  its.container_id = entry.key.container_id;
  its.netns = entry.netns;
  its.args = entry.cni_args;
  if (its.path.empty()) its.path = entry.cni_path;
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 cannot parse <ranges>' reverse view.
  for (auto call = entry.ipam_calls.rbegin(); call != entry.ipam_calls.rend(); ++call) {
    its.ifname = call->ifname;
    const auto released = RunDelegate(its, {entry.ipam_type, "DEL", call->config, {}});
    if (!released && !HoldsNothing(entry, *call, released.error().code)) return Fail(released.error());
  }
  return {};
}

Result<void> IpamCheck(const CniRequest& request, const JournalEntry& entry) {
  const auto now = nlohmann::json::parse(request.config, nullptr, false);
  for (const auto& call : entry.ipam_calls) {
    auto config = nlohmann::json::parse(call.config, nullptr, false);
    if (now.contains("prevResult")) config["prevResult"] = now["prevResult"];
    RH_TRY(RunDelegate(WithIfname(request, call.ifname), {entry.ipam_type, "CHECK", config.dump(), {}}));
  }
  return {};
}

Result<void> IpamDelUnknown(const Root& root, const CniRequest& request, const PluginConfig& config) {
  // The policy refused its ADD, so it holds nothing.
  const auto may = ReadPermissions(root, request.network, request.args);
  if (!may || !may->RequireIpamType(config.ipam_type)) return {};
  auto asked = ForwardToIpam(request, config, "DEL");
  if (!asked && (IpamTypeWithoutEntry(config) == kOwnIpam || Misunderstands(asked.error().code))) return {};
  return asked;
}

Result<void> IpamForward(const CniRequest& request, const PluginConfig& config, const std::string& command) {
  return ForwardToIpam(request, config, command);
}

}  // namespace railhead::attachment
