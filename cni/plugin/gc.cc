#include <algorithm>
#include <string>

#include "cni/plugin/ipam_step.h"
#include "cni/plugin/plugin.h"

namespace railhead {

// Of this network only: what the runtime does not know as valid is released as by DEL.
// All are tried; the first failure is told.
Result<void> RailheadPlugin::Gc(const CniRequest& request, const std::vector<ValidAttachment>& valid) {
  const PluginConfig config = RH_TRY(ReadPluginConfig(request));
  std::optional<Error> first;
  for (const auto& entry : RH_TRY(journal_.All())) {
    const bool keep =
        entry.key.network != request.network ||
        std::any_of(valid.begin(), valid.end(), [&](const ValidAttachment& attachment) {
          return attachment.container_id == entry.key.container_id && attachment.ifname == entry.key.ifname;
        });
    if (keep) continue;
    auto released = Release(request, entry.key);
    if (!released && !first) first = Wrap(released.error(), "GC of " + entry.key.ToString());
  }
  if (auto forwarded = IpamForward(request, config, "GC"); !forwarded && !first) first = forwarded.error();
  if (first) return Fail(*first);
  return {};
}

}  // namespace railhead
