#include "deviceplugin/services/node_index/index_directory.h"

#include <algorithm>
#include <utility>

#include "deviceplugin/services/node_index/kube_index_store.h"
#include "deviceplugin/support/kubernetes/kube_access.h"

namespace railhead::node_index {
namespace {

constexpr std::uint64_t kPauseMsPerIndex = 100;
constexpr std::uint64_t kFirstListPauseMs = 5'000;  // after a failure
constexpr int kMostListPauses = 7;
constexpr std::uint64_t kLongestPauseMs = 600'000;

}  // namespace

bool NeedsDirectory(const Fabric& fabric) {
  return fabric.ClaimsIndices() && !fabric.reachability.empty() &&
         std::ranges::any_of(fabric.rails,
                             [](const Rail& rail) { return rail.probe_range || rail.probe_place; });
}

IndexDirectory::IndexDirectory(const KubeAccess& access, std::chrono::milliseconds timeout,
                               IndexRandom random, Published<NodeIndices>* published)
    : watch_(access, timeout, kClaimsPath), random_(std::move(random)), published_(published) {}

IndexDirectory::~IndexDirectory() {
  published_->Set({});
}

std::uint64_t IndexDirectory::PauseMs(int own) {
  std::uint64_t longest = kPauseMsPerIndex * static_cast<std::uint64_t>(std::max(own, 0));
  if (failures_ > 0) longest += kFirstListPauseMs << std::min(failures_ - 1, kMostListPauses);
  return random_() % (std::min(longest, kLongestPauseMs) + 1);
}

Result<void> IndexDirectory::Step(std::uint64_t boottime_ms, int own) {
  if (!next_ms_) next_ms_ = boottime_ms + PauseMs(own);
  if (boottime_ms < *next_ms_) return {};
  const bool was_listed = watch_.listed();
  auto taken = watch_.Take(std::chrono::milliseconds(0), *this);
  failures_ = taken ? 0 : failures_ + 1;
  // Also where the server has forgotten its versions: every node's watch ends at once then.
  if (!taken || (was_listed && !watch_.listed())) next_ms_ = boottime_ms + PauseMs(own);
  if (std::exchange(changed_, false)) Publish();
  return taken;
}

void IndexDirectory::EndList() {
  claims_ = *std::exchange(listing_, std::nullopt);
  changed_ = true;
}

void IndexDirectory::Set(const std::string& name, JsonReader object) {
  const auto index = ParseKubeName(name);
  if (!index) return;
  std::string created;
  if (auto metadata = object.Object("metadata")) created = metadata->String("creationTimestamp").value_or("");
  const auto entry = ParseClaim(std::move(object));
  // IndexReclaim reports those that nobody can read.
  const auto record = entry && *entry ? ParseIndexRecord(**entry) : Fail(ErrorCode::kMalformed, "");
  Claims& claims = listing_ ? *listing_ : claims_;
  if (record) {
    claims[*index] = {record->node, std::move(created)};
  } else {
    claims.erase(*index);
  }
  changed_ = true;
}

void IndexDirectory::Remove(const std::string& name) {
  if (const auto index = ParseKubeName(name)) changed_ = claims_.erase(*index) != 0 || changed_;
}

void IndexDirectory::Publish() {
  std::map<std::string, Claims::const_iterator> latest;
  for (auto claim = claims_.cbegin(); claim != claims_.cend(); ++claim) {
    const auto [place, is_first] = latest.emplace(claim->second.node, claim);
    if (!is_first && place->second->second.created < claim->second.created) place->second = claim;
  }
  NodeIndices indices;
  for (const auto& [node, claim] : latest)
    indices.emplace_hint(indices.end(), node, static_cast<int>(claim->first));
  published_->Set(std::move(indices));
}

}  // namespace railhead::node_index
