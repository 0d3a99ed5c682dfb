#include "cni/attachment/host_names.h"

#include "cni/state/displaced_names.h"

namespace railhead::attachment {

Result<bool> IsNameInUse(RouteApi& host, const std::string& name, std::optional<int> own_index) {
  const auto holder = RH_TRY(host.FindLink(name));
  return holder && holder->index != own_index;
}

Result<std::string> ChooseHostName(const Root& root, RouteApi& host, const AttachedDevice& device,
                                   std::optional<int> own_index) {
  if (!RH_TRY(IsNameInUse(host, device.before.name, own_index))) return device.before.name;
  // Written first: a device with a substitute name but no record would keep that name.
  RH_TRY(WriteDisplacedNames(root, device.device, {device.before.name, device.before.alt_names}));
  for (int n = 0; n < kSubstitutes; ++n) {
    std::string name = SubstituteName(device.device, n);
    if (!RH_TRY(IsNameInUse(host, name, own_index))) return name;
  }
  return Fail(ErrorCode::kExists,
              "device " + device.device + " cannot come back to the host: " + device.before.name + " and " +
                  SubstituteName(device.device) + " to " + SubstituteName(device.device, kSubstitutes - 1) +
                  " are all names of other interfaces",
              "rename one of them");
}

}  // namespace railhead::attachment
