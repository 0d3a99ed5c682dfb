#include "cni/state/tenants.h"

#include <optional>
#include <string>
#include <string_view>

#include "cni/protocol/cni_args.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
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
  const auto text = ReadRootFile(path);
  if (!text && text.error().sys_errno != 0) return Fail(text.error());
  if (text && !*text) return std::nullopt;
  // A record that others could change says nothing, as one that is damaged: DEL goes on, and ADD resets.
  auto tenant = text ? ParseRecord<Tenant>(**text, path) : Result<Tenant>(Fail(text.error()));
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

Result<void> MarkLeftover(const Root& root, const std::string& device, const std::string& why) {
  auto tenant = RH_TRY(ReadTenant(root, device));
  if (!tenant || !tenant->leftover.empty()) return {};
  tenant->leftover = why;
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

}  // namespace railhead
