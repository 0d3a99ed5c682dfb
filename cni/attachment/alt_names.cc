#include "cni/attachment/alt_names.h"

#include "cni/state/displaced_names.h"
#include "netns/base/text.h"

namespace railhead::attachment {

Result<bool> AddAltNames(RouteApi& host, const Link& link, const std::vector<std::string>& requested) {
  bool all = true;
  for (const std::string& name : requested) {
    if (Contains(link.alt_names, name)) continue;
    const auto added = host.AddAltName(link.index, name);
    if (!added && added.error().code != ErrorCode::kExists) return Fail(added.error());
    all = all && added.has_value();
  }
  return all;
}

Result<void> RemovePodAltNames(RouteApi& host, const AttachedDevice& device, const Link& found) {
  for (const std::string& name : found.alt_names) {
    const bool own = Contains(device.before.alt_names, name) && name != device.before.name;
    if (!own) RH_TRY(host.DeleteAltName(found.index, name));
  }
  return {};
}

Result<void> RestoreAltNames(const Root& root, RouteApi& host, const AttachedDevice& device, const Link& now,
                             const std::string& name) {
  const bool all = RH_TRY(AddAltNames(host, now, device.before.alt_names));
  if (all && name == device.before.name) return RemoveDisplacedNames(root, device.device);
  return WriteDisplacedNames(root, device.device, {device.before.name, device.before.alt_names});
}

}  // namespace railhead::attachment
