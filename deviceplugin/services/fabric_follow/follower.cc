#include "deviceplugin/services/fabric_follow/follower.h"

#include <set>
#include <utility>

#include "deviceplugin/services/fabric_follow/install_config.h"
#include "deviceplugin/support/install/install_directory.h"
#include "netns/base/root_file.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

template struct railhead::StateFile<railhead::fabric_follow::FollowState>;

namespace railhead::fabric_follow {
namespace {

using Type = MetricType;

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

Result<FollowState> Follower::Take() {
  Texts texts = RH_TRY(ReadTexts());
  if (decided_ == texts && state_) return *state_;
  decided_.reset();
  FollowState state{directory_ + "/" + kFabricName, {}, {}};
  if (!texts.Same()) {
    WantedConfig wanted = RH_TRY(ReadWanted(root_.Path(directory_)));
    for (const Error& error : wanted.errors) state.refused.push_back(Describe(error));
    if (wanted.errors.empty()) {
      const auto directory = RH_TRY(install::InstallDirectory::Open(root_.Path(kConfigDirectory)));
      state.pending = RH_TRY(KeepBusyRails(root_, directory, &wanted.files));
      for (const install::InstalledFile& file : RH_TRY(directory.Put(wanted.files, kConfigMode))) {
        if (file.outcome != install::InstallOutcome::kUnchanged)
          log_->Info("a changed configuration is in force", {{"file", file.name}});
      }
      return state;
    }
  }
  decided_ = std::move(texts);
  return state;
}

void Follower::Report(const FollowState& now) {
  const auto before = State();
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
  if (before == now && known_problem_.empty()) return;
  const auto written = kFollowFile.Write(root_, now);
  const std::string problem = written ? "" : written.error().message;
  if (std::exchange(known_problem_, problem) != problem && !written)
    log_->Warning("saving which changes of the fabric wait failed", written.error());
  const std::lock_guard lock(mutex_);
  state_ = now;
}

void Follower::Start(Calls calls) {
  const auto pass = [this, calls = std::move(calls)] {
    if (calls.is_standby()) return;
    const auto before = State();
    Step();
    if (calls.changed && before != State()) calls.changed();
  };
  loop_ = std::make_unique<PassLoop>(kInterval, PassLoop::Pass{pass, [] {}});
}

void Follower::Stop() {
  if (loop_) loop_->Stop();
}

bool Follower::AwaitEnd(std::chrono::milliseconds limit) {
  return !loop_ || loop_->AwaitEnd(limit);
}

std::optional<FollowState> Follower::State() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::string Follower::Refused() const {
  const std::lock_guard lock(mutex_);
  return state_ ? Join(state_->refused, "; ") : std::string();
}

void AppendFollower(Exposition* page, const Follower* follower) {
  const auto state = follower == nullptr ? std::nullopt : follower->State();
  page->Begin(Type::kGauge, "railhead_fabric_pending_rails",
              "Rails in use because of which a change of the fabric waits");
  if (state) page->Sample({}, std::uint64_t{RailsOf(state->pending).size()});
  page->Begin(Type::kGauge, "railhead_fabric_refused",
              "1 while the fabric that railheadd follows is refused, and the last valid one stays in force");
  if (state) page->Sample({}, std::uint64_t{state->refused.empty() ? 0U : 1U});
}

}  // namespace railhead::fabric_follow
