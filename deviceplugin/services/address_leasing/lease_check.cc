#include "deviceplugin/services/address_leasing/lease_check.h"

#include "deviceplugin/services/address_leasing/lease_plan.h"
#include "deviceplugin/services/address_leasing/store_factory.h"

namespace railhead {

std::pair<std::string, std::string> StoreOf(const LeaseStoreConfig& store) {
  if (store.type == LeaseStoreType::kEtcd) return {"etcd", store.etcd};
  return {"kubernetes", store.kubernetes};
}

Result<void> CheckLeasing(const Fabric& fabric, const std::string& what) {
  const auto plan = RH_TRY(CheckLeases(fabric, what));
  if (!plan) return {};
  const auto [type, settings] = StoreOf(plan->store);
  return CheckStoreSettings(type, settings, plan->where + "/" + type);
}

Result<void> CheckLeasing(const Root& root, const std::string& fabric_path) {
  const auto fabric = RH_TRY(ReadFabric(root, fabric_path));
  return fabric ? CheckLeasing(*fabric, fabric_path) : Result<void>();
}

}  // namespace railhead
