#include "deviceplugin/services/fabric_follow/follower.h"

#include <cstdint>
#include <set>
#include <utility>

#include "deviceplugin/services/fabric_follow/install_config.h"
#include "deviceplugin/support/install/install_directory.h"
#include "deviceplugin/support/service/pass_pause.h"
#include "netns/base/node.h"
#include "netns/base/root_file.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::fabric_follow::FollowState>;

namespace railhead::fabric_follow {
namespace {

// kubelet needs up to a minute for a ConfigMap, and a pod some seconds to end.
constexpr std::chrono::seconds kInterval{5};

std::set<std::string> NamesOf(const std::optional<FollowState>& state) {
  std::set<std::string> names;
  if (!state) return names;
  for (const PendingChange& change : state->pending) names.insert(change.name);
  return names;
}

}  // namespace

Follower::Follower(Root root, std::string directory, Log* log)
    : root_(std::move(root)), directory_(std::move(directory)), log_(log) {}

void Follower::Step() {
  auto taken = Take();
  if (taken) {
    Report(*taken);
  } else {
    Report({directory_ + "/" + kFabricName, {Describe(taken.error())}, {}});
  }
}

Result<Follower::Texts> Follower::ReadTexts() const {
  const auto wanted = [&](const char* name) { return ReadVolumeFile(root_.Path(directory_ + "/" + name)); };
  // Only compared: the parts that act by these refuse them themselves.
  const auto present = [&](const char* name) {
    return ReadFile(root_.Path(std::string(kConfigDirectory) + "/" + name));
  };
  Texts texts;
  texts.wanted_fabric = RH_TRY(wanted(kFabricName));
  texts.wanted_topology = RH_TRY(wanted(kTopologyName));
  texts.fabric = RH_TRY(present(kFabricName));
  texts.topology = RH_TRY(present(kTopologyName));
  return texts;
}

Result<const WantedConfig*> Follower::Wanted(const Texts& texts) {
  const bool is_known = wanted_ && wanted_texts_.wanted_fabric == texts.wanted_fabric &&
                        wanted_texts_.wanted_topology == texts.wanted_topology;
  if (!is_known) {
    wanted_ = RH_TRY(ReadWanted(root_.Path(directory_), NodeName(root_).value_or("")));
    wanted_texts_ = texts;
  }
  return &*wanted_;
}

Result<FollowState> Follower::Take() {
  Texts texts = RH_TRY(ReadTexts());
  if (const auto state = state_.Get(); decided_ == texts && *state) return **state;
  decided_.reset();
  FollowState state{directory_ + "/" + kFabricName, {}, {}};
  if (!texts.Same()) {
    const WantedConfig& wanted = *RH_TRY(Wanted(texts));
    for (const Error& error : wanted.errors) state.refused.push_back(Describe(error));
    if (wanted.errors.empty()) {
      const auto directory = RH_TRY(install::InstallDirectory::Open(root_.Path(kConfigDirectory)));
      auto files = wanted.files;
      state.pending = RH_TRY(KeepBusyRails(root_, directory, &files));
      bool in_force = state.pending.empty();
      for (const install::InstalledFile& file : RH_TRY(directory.Put(files, kConfigMode))) {
        if (file.outcome == install::InstallOutcome::kUnchanged) continue;
        in_force = false;
        log_->Info("a changed configuration is in force", {{"file", file.name}});
      }
      if (!in_force) return state;
    }
  }
  decided_ = std::move(texts);
  return state;
}

void Follower::Report(const FollowState& now) {
  const auto state = state_.Get();
  const std::optional<FollowState>& before = *state;
  if (!now.refused.empty() && (!before || before->refused != now.refused)) {
    const bool has_one = Exists(root_.Path(std::string(kConfigDirectory) + "/" + kFabricName));
    log_->Warning(has_one ? "the changed fabric is refused; the last valid one stays in force"
                          : "the node has no fabric, and waits for a valid one",
                  Error{ErrorCode::kInvalid, Join(now.refused, "; "),
                        "see railctl config check and railctl config diff", 0},
                  {{"file", now.file}});
  }
  if (now.refused.empty() && before && !before->refused.empty()) log_->Info("the fabric is accepted again");
  const auto known = NamesOf(before);
  for (const PendingChange& change : now.pending) {
    if (known.contains(change.name)) continue;
    log_->Info("a change of the fabric waits until pods have ended",
               {{"name", change.name},
                {"rails", Join({change.rails.begin(), change.rails.end()}, ",")},
                {"pods", Join({change.pods.begin(), change.pods.end()}, ",")}});
  }
  if (before == now && !unsaved_) return;
  const auto written = kFollowFile.Write(root_, now);
  unsaved_ = !written;
  if (problem_.IsNew(written))
    log_->Warning("saving which changes of the fabric wait failed", written.error());
  if (before == now) return;
  const std::string refused = Join(now.refused, "; ");
  if (*refused_.Get() != refused) refused_.Set(refused);
  state_.Set(now);
}

void Follower::Register(MetricRegistry& metrics) {
  metrics.Add(MetricType::kGauge, "railhead_fabric_pending_rails",
              "Rails in use because of which a change of the fabric waits", [this](Exposition& page) {
                if (const auto state = state_.Get(); *state)
                  page.Sample({}, std::uint64_t{RailsOf((*state)->pending).size()});
              });
  metrics.Add(MetricType::kGauge, "railhead_fabric_refused",
              "1 while the fabric that railheadd follows is refused, and the last valid one stays in force",
              [this](Exposition& page) {
                if (const auto state = state_.Get(); *state)
                  page.Sample({}, std::uint64_t{(*state)->refused.empty() ? 0U : 1U});
              });
}

Result<void> Follower::Run(Worker& worker) {
  while (directory_.empty() && !worker.StopRequested()) worker.Wait(Worker::Clock::time_point::max());
  PassPause pause(kInterval);
  while (!worker.StopRequested()) {
    Step();
    worker.Wait(Worker::Clock::now() + pause.Next());
  }
  return {};
}

}  // namespace railhead::fabric_follow
