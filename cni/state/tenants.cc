#include "cni/state/tenants.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cni/protocol/plugin.h"
#include "cni/state/attach_log.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

constexpr std::string_view kTenantSuffix = ".json";

std::string TenantPath(const Root& root, const std::string& device) {
  return paths::Tenants(root) + "/" + device + std::string(kTenantSuffix);
}

}  // namespace

Tenant TenantOf(const CniArgs& args) {
  return {PodNamespace(args), PodName(args), ""};
}

std::string Describe(const Tenant& tenant) {
  if (!tenant.pod.empty()) return "pod " + tenant.pod;
  return tenant.pod_namespace.empty() ? "a container without a pod"
                                      : "a pod of namespace " + tenant.pod_namespace;
}

Result<std::optional<Tenant>> ReadTenant(const Root& root, const std::string& device) {
  const std::string path = TenantPath(root, device);
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return std::nullopt;
  auto tenant = ParseRecord<Tenant>(*text, path);
  if (tenant) return *std::move(tenant);
  return Tenant{"", "", "the record of its last pod cannot be read: " + tenant.error().message};
}

Result<void> WriteTenant(const Root& root, const std::string& device, const Tenant& tenant) {
  const std::string path = TenantPath(root, device);
  const std::string text = RH_TRY(FormatRecord(tenant, path));
  return WriteStateFile(root, path, text);
}

Result<void> RemoveTenant(const Root& root, const std::string& device) {
  RH_TRY(RemoveWritten(TenantPath(root, device)));
  return {};
}

Result<void> MarkLeft(const Root& root, const std::string& device, const std::string& why) {
  auto tenant = RH_TRY(ReadTenant(root, device));
  if (!tenant || !tenant->left.empty()) return {};
  tenant->left = why;
  return WriteTenant(root, device, *tenant);
}

Result<std::vector<std::string>> ListTenantDevices(const Root& root) {
  std::vector<std::string> devices;
  const auto names = RH_TRY(ListDirectory(paths::Tenants(root)));
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (name.ends_with(kTenantSuffix)) devices.push_back(name.substr(0, name.size() - kTenantSuffix.size()));
  }
  return devices;
}

namespace {

bool HasMac(const AttachedDevice& device, const MacAddress& mac) {
  return device.before.mac == mac || device.wanted.vf.mac == mac;
}

// "": no pod of this node has the MAC, or its runtime did not name it.
std::string PodWith(const JournalScan& journal, const MacAddress& mac) {
  for (const JournalEntry& entry : journal.entries) {
    const bool has =
        std::ranges::any_of(entry.devices, [&](const AttachedDevice& one) { return HasMac(one, mac); });
    if (has) return PodName(entry.cni_args);
  }
  return "";
}

}  // namespace

std::chrono::milliseconds BoottimeNow() {
  timespec time{};
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::milliseconds(time.tv_nsec / 1'000'000);
}

void LogRivalClaim(const Root& root, const RivalClaim& claim) {
  AppendToAttachLog(root, ToJson(claim));
}

std::string Claimant::ToString() const {
  const std::string of = pod.empty() ? " (no pod of this node)" : " (pod " + pod + ")";
  return source.ToString() + of + " claims " + std::to_string(addresses.size()) + " addresses, " +
         (addresses.empty() ? "none" : addresses.begin()->ToString()) + " among them";
}

Result<std::vector<Claimant>> ListClaimants(const Root& root, std::chrono::milliseconds since) {
  std::map<MacAddress, Claimant> by_source;
  for (const RivalClaim& claim : RH_TRY(ReadRivalClaims(root))) {
    if (!claim.ignored || claim.boottime <= since) continue;
    Claimant& one = by_source[claim.source];
    one.source = claim.source;
    one.addresses.insert(claim.address);
    ++one.claims;
    one.latest = std::max(one.latest, claim.boottime);
  }
  std::vector<Claimant> claimants;
  if (by_source.empty()) return claimants;
  const JournalScan journal = RH_TRY(Journal(root).Scan());
  for (auto& [source, one] : by_source) {
    one.pod = PodWith(journal, source);
    claimants.push_back(std::move(one));
  }
  return claimants;
}

Result<std::vector<RivalClaim>> ReadRivalClaims(const Root& root) {
  std::vector<RivalClaim> claims;
  for (const char* suffix : {".1", ""}) {
    const auto text = RH_TRY(ReadFile(paths::AttachLog(root) + suffix));
    for (const auto& line : Split(text.value_or(""), '\n')) {
      // A line of another kind, or a damaged one, is passed over.
      if (auto claim = ParseRecord<RivalClaim>(line, "attach log")) claims.push_back(*std::move(claim));
    }
  }
  return claims;
}

}  // namespace railhead
