#include "deviceplugin/services/reachability/reachability_settings.h"

#include "cni/fabric/fabric.h"
#include "netns/json/record_io.h"

namespace railhead::reachability {

Result<ReachabilitySettings> ParseReachabilitySettings(const std::string& text, const std::string& what,
                                                       std::vector<Error>* all) {
  return ParseSection<ReachabilitySettings>(text, what, "/reachability", all);
}

}  // namespace railhead::reachability
