#include "deviceplugin/services/reachability/reach_summary.h"

#include <algorithm>
#include <vector>

namespace railhead {

std::optional<RttSpread> SpreadOfRtt(const RailReach& rail) {
  std::vector<std::chrono::microseconds> times;
  for (const PeerReach& peer : rail.peers) {
    if (peer.state == PeerState::kReachable && peer.rtt) times.push_back(*peer.rtt);
  }
  if (times.empty()) return std::nullopt;
  std::sort(times.begin(), times.end());
  // Of an even number the smaller one: a time that was measured.
  return RttSpread{times[(times.size() - 1) / 2], times.back()};
}

}  // namespace railhead
