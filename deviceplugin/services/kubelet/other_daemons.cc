#include "deviceplugin/services/kubelet/other_daemons.h"

#include <algorithm>
#include <utility>

namespace railhead {
namespace {

bool HaveLeft(const std::set<std::string>& before, const std::set<std::string>& now) {
  return !std::includes(now.begin(), now.end(), before.begin(), before.end());
}

}  // namespace

Siblings::Seen Siblings::Look(const std::string& directory, const std::string& own_name,
                              std::span<const std::string> passed) {
  std::set<std::string> newer;
  std::set<std::string> older;
  for (OtherServer& other : OtherServers(directory, own_name)) {
    met_.insert(other.name);
    (other.newer ? newer : older).insert(std::move(other.name));
  }
  Seen seen;
  if (!newer.empty()) seen.newer = *newer.begin();
  seen.newer_left = HaveLeft(newer_, newer);
  seen.older_left = HaveLeft(older_, older);
  for (const std::string& name : passed) {
    // Who came since the last look is the newer one.
    if (met_.erase(name) == 0 && IsOther(name, own_name)) seen.newer_left = true;
  }
  newer_ = std::move(newer);
  older_ = std::move(older);
  return seen;
}

}  // namespace railhead
