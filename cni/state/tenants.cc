#include "cni/state/tenants.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

constexpr std::string_view kTenantSuffix = ".json";

std::string TenantPath(const Root& root, const std::string& device) {
  return paths::Tenants(root) + "/" + device + std::string(kTenantSuffix);
}

Result<Tenant> ParseTenant(const std::string& text, const std::string& path) {
  const auto document = RH_TRY(JsonDocument::Parse(text, path));
  JsonReader reader = document.Root();
  Tenant tenant;
  const auto text_of = [&](const char* key) {
    if (!reader.Has(key)) reader.Fail(key, "is required");
    return reader.String(key).value_or("");
  };
  tenant.pod_namespace = text_of("namespace");
  tenant.pod = text_of("pod");
  tenant.left = reader.String("left").value_or("");
  RH_TRY(reader.status());
  return tenant;
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
  auto tenant = ParseTenant(*text, path);
  if (tenant) return *std::move(tenant);
  return Tenant{"", "", "the record of its last pod cannot be read: " + tenant.error().message};
}

Result<void> WriteTenant(const Root& root, const std::string& device, const Tenant& tenant) {
  nlohmann::ordered_json json{{"namespace", tenant.pod_namespace}, {"pod", tenant.pod}};
  if (!tenant.left.empty()) json["left"] = tenant.left;
  const std::string path = TenantPath(root, device);
  RH_TRY(MakeStateFolderOf(root, path, 0700));
  return WriteAtomic(path, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                     Sync::kVolatile);
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

}  // namespace railhead
