#include "deviceplugin/node/resources/restore_allocated.h"

#include <string>
#include <string_view>
#include <utility>

#include "cni/state/allocation.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/resources/cdi_grant.h"
#include "deviceplugin/node/resources/device_info.h"
#include "deviceplugin/node/resources/grant.h"
#include "netns/base/files.h"

namespace railhead::resources {
namespace {

constexpr std::string_view kRecordSuffix = ".json";

Result<void> RestoreOne(const Root& root, const ResourceSpec& spec, const PoolMember& member) {
  const auto record = ReadAllocation(root, member.function.id);
  if (!record || !*record || (*record)->resource != spec.resource) return {};
  auto described = WriteDeviceInfo(root, spec, member);
  if (!spec.cdi_nodes) return described;
  const Grant grant = RH_TRY(GrantOf(root, spec, member));
  RH_TRY(WriteCdiGrant(root, spec, member, grant));
  return described;
}

}  // namespace

Result<void> RestoreAllocated(const Root& root,
                              const std::vector<std::shared_ptr<const ResourcePool>>& pools) {
  const auto records = RH_TRY(ListDirectory(paths::Allocations(root)));
  if (!records) return {};
  Result<void> first_error;
  for (const std::string& file : *records) {
    if (file.size() <= kRecordSuffix.size()) continue;
    const std::string id = file.substr(0, file.size() - kRecordSuffix.size());
    for (const auto& pool : pools) {
      const PoolMember* member = pool->Find(id);
      if (member == nullptr) continue;
      auto restored = RestoreOne(root, pool->spec, *member);
      if (!restored && first_error) first_error = std::move(restored);
    }
  }
  return first_error;
}

}  // namespace railhead::resources
