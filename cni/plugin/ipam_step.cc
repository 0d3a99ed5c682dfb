#include "cni/plugin/ipam_step.h"

#include "cni/skel/delegate.h"

namespace railhead {

Result<CniResult> IpamAdd(const CniRequest& request, const std::string& type, const std::string& rail,
                          int lock_fd) {
  const auto output = RH_TRY(RunDelegate(request, {type, "ADD", IpamConfig(request, type, rail), {lock_fd}}));
  CniResult result = RH_TRY(ParseCniResult(output, "result of " + type));
  if (result.ips.empty()) {
    return Fail(ErrorCode::kInvalid, "IPAM plugin " + type + " gave no address",
                "check its configuration, or write \"ipam\": {} for none");
  }
  return result;
}

Result<void> IpamDel(const CniRequest& request, const std::string& type, const std::string& rail) {
  RH_TRY(RunDelegate(request, {type, "DEL", IpamConfig(request, type, rail)}));
  return {};
}

Result<void> IpamRelease(const CniRequest& request, const JournalEntry& entry) {
  if (entry.ipam_type.empty()) return {};
  CniRequest its = request;
  its.network = entry.key.network;
  its.container_id = entry.key.container_id;
  its.ifname = entry.key.ifname;
  its.netns = entry.netns;
  const auto released = RunDelegate(its, {entry.ipam_type, "DEL", entry.ipam_config});
  if (released || released.error().code == ErrorCode::kNotFound) return {};
  return Fail(released.error());
}

Result<void> IpamCheck(const CniRequest& request, const std::string& type, const std::string& rail) {
  RH_TRY(RunDelegate(request, {type, "CHECK", IpamConfig(request, type, rail)}));
  return {};
}

Result<void> IpamDelUnknown(const CniRequest& request, const PluginConfig& config) {
  if (config.ipam_given) {
    return config.ipam_type.empty() ? Result<void>()
                                    : IpamDel(request, config.ipam_type, config.rail.value_or(""));
  }
  auto released = IpamDel(request, kOwnIpam, config.rail.value_or(""));
  const bool not_installed = !released && released.error().code == ErrorCode::kNotFound;
  return not_installed ? Result<void>() : released;
}

}  // namespace railhead
