#include "deviceplugin/services/address_leasing/store_factory.h"

#include <utility>

#include "deviceplugin/services/address_leasing/etcd_store.h"
#include "deviceplugin/services/address_leasing/kube_store.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

struct Settings {
  EtcdConfig etcd;
  KubeConfig kubernetes;
};

Result<Settings> ReadSettings(const std::string& type, const std::string& text, const std::string& what) {
  if (type != "etcd" && type != "kubernetes") {
    return Fail(ErrorCode::kInvalid, what + ": '" + type + "' is no kind of cluster store",
                "etcd or kubernetes");
  }
  const auto document = RH_TRY(JsonDocument::Parse(text.empty() ? "{}" : text, what));
  JsonReader reader = document.Root();
  Settings settings;
  if (type == "etcd") {
    settings.etcd = ReadEtcdConfig(reader);
  } else {
    settings.kubernetes = ReadKubeConfig(reader);
  }
  RH_TRY(reader.status());
  return settings;
}

}  // namespace

Result<std::unique_ptr<ClusterStore>> MakeClusterStore(const Root& root, const std::string& type,
                                                       const std::string& settings, const std::string& what,
                                                       const KubeService& service) {
  const Settings read = RH_TRY(ReadSettings(type, settings, what));
  if (type == "etcd") return MakeEtcdStore(root, read.etcd);
  const KubeAccess access = RH_TRY(FindKubeAccess(root, read.kubernetes, service));
  return MakeKubeStore(access, read.kubernetes.timeout);
}

Result<void> CheckStoreSettings(const std::string& type, const std::string& settings,
                                const std::string& what) {
  RH_TRY(ReadSettings(type, settings, what));
  return {};
}

}  // namespace railhead
