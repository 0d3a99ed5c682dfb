#include "deviceplugin/leasing/lease_check.h"

#include "cni/fabric/fabric.h"
#include "deviceplugin/leasing/lease_plan.h"
#include "deviceplugin/leasing/store_factory.h"

namespace railhead {

std::pair<std::string, std::string> StoreOf(const LeaseStoreConfig& store) {
  if (store.type == LeaseStoreType::kEtcd) return {"etcd", store.etcd};
  return {"kubernetes", store.kubernetes};
}

Result<void> CheckLeasing(const Root& root, const std::string& fabric_path) {
  const auto fabric = RH_TRY(ReadFabric(root, fabric_path));
  if (!fabric) return {};
  const auto plan = RH_TRY(CheckLeases(*fabric, fabric_path));
  if (!plan) return {};
  const auto [type, settings] = StoreOf(plan->store);
  return CheckStoreSettings(type, settings, plan->where + "/" + type);
}

}  // namespace railhead
