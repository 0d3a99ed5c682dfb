#include "deviceplugin/services/reachability/answer_limits.h"

namespace railhead::reachability {

void AnswerLimits::SetPeers(const std::set<IpAddress>& peers) {
  std::erase_if(peers_, [&](const auto& one) { return !peers.contains(one.first); });
  for (const IpAddress& peer : peers) peers_.try_emplace(peer);
}

bool AnswerLimits::Use(Used* used, int most, Clock::time_point now) {
  if (now - used->since >= std::chrono::seconds(1)) *used = {now, 0};
  if (used->answers == most) return false;
  ++used->answers;
  return true;
}

bool AnswerLimits::Allow(const IpAddress& sender, Clock::time_point now) {
  const auto peer = peers_.find(sender);
  if (peer != peers_.end()) return Use(&peer->second, of_peer_, now);
  if (now - others_since_ >= kOthersTime) {
    others_since_ = now;
    others_.clear();
  }
  if (others_.size() == kOthers && !others_.contains(sender)) return false;
  if (!Use(&by_others_, of_others_, now)) return false;
  others_.insert(sender);
  return true;
}

}  // namespace railhead::reachability
