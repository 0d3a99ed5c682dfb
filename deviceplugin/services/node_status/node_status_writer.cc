#include "deviceplugin/services/node_status/node_status_writer.h"

#include <algorithm>
#include <utility>

#include "deviceplugin/services/node_status/taints.h"

namespace railhead {
namespace {

using std::chrono::milliseconds;

constexpr int kTaintTries = 3;
// More are older than what they tell.
constexpr std::size_t kMostWaiting = 50;

// Asking again helps.
bool IsTransient(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

void Note(Result<void> done, IsolationOutcome* outcome) {
  if (!done && !outcome->problem) outcome->problem = std::move(done.error());
}

}  // namespace

Isolator::Isolator(IsolationSettings settings, std::unique_ptr<NodeApi> api, std::uint64_t seed)
    : settings_(std::move(settings)), api_(std::move(api)), random_(seed) {}

IsolationOutcome Isolator::Step(const Situation& situation, Steady now, System wall) {
  IsolationOutcome outcome;
  node_.reset();
  Follow(situation, now);
  const bool beat = !beat_ || now >= *beat_;
  if (settings_.taint || settings_.no_taint) {
    const bool wanted = settings_.taint && WantsTaint(*settings_.taint, situation.rails);
    const bool waits = wanted && !situation.may_taint && tainted_ != true;
    if (!waits && (tainted_ != wanted || (beat && settings_.taint)))
      Note(SettleTaint(wanted, &outcome), &outcome);
  }
  if (settings_.node_condition) {
    const RailsCondition condition = ConditionOf(situation.rails);
    if (condition_ != condition || beat) Note(SettleCondition(condition, wall, &outcome), &outcome);
  }
  Note(TellEvents(wall), &outcome);
  if (outcome.problem) {
    failed_steps_.Add();
    outcome.wait = BackOff();
    return outcome;
  }
  failures_ = 0;
  if (beat) beat_ = now + Jittered(kHeartbeat);
  outcome.wait = std::chrono::ceil<milliseconds>(*beat_ - now);
  return outcome;
}

void Isolator::Follow(const Situation& situation, Steady now) {
  if (!settings_.events) return;
  const auto before = std::exchange(devices_, situation.devices);
  // After a start nobody knows what the cluster has been told.
  if (!before) return;
  for (HealthEvent& event : EventsBetween(*before, situation)) {
    if (!gate_.Take(event, now)) {
      limited_.Add();
      continue;
    }
    events_.push_back(std::move(event));
  }
  for (; events_.size() > kMostWaiting; events_.pop_front()) failed_.Add();
}

Result<NodeObject*> Isolator::Node() {
  if (!node_) node_ = RH_TRY(api_->Read());
  return &*node_;
}

Result<void> Isolator::SettleTaint(bool wanted, IsolationOutcome* outcome) {
  Result<void> written;
  for (int i = 0; i < kTaintTries; ++i) {
    const NodeObject* node = RH_TRY(Node());
    const auto taints = ChangedTaints(node->taints, wanted ? settings_.taint->effect : "");
    if (!taints) {
      tainted_ = wanted;
      return {};
    }
    const bool had = HasRailsTaint(node->taints);
    written = api_->WriteTaints(*node, *taints);
    node_.reset();
    if (written) {
      tainted_ = wanted;
      if (had != wanted) outcome->tainted = wanted;
      return {};
    }
    if (written.error().code != ErrorCode::kConflict) break;
  }
  return written;
}

Result<void> Isolator::SettleCondition(const RailsCondition& condition, System wall,
                                       IsolationOutcome* outcome) {
  const NodeObject* node = RH_TRY(Node());
  const bool changed = node->condition != (condition.ready ? "True" : "False");
  RH_TRY(api_->WriteCondition(condition, wall, changed));
  if (std::exchange(condition_, condition) != condition) outcome->condition = condition;
  return {};
}

Result<void> Isolator::TellEvents(System wall) {
  while (!events_.empty()) {
    auto created = api_->Create(events_.front(), wall);
    if (!created && IsTransient(created.error())) return created;
    (created ? told_ : failed_).Add();
    events_.pop_front();
    if (!created) return created;
  }
  return {};
}

milliseconds Isolator::BackOff() {
  const int doubled = std::min(failures_++, 10);
  const milliseconds wait =
      std::min<milliseconds>(kMostBackOff, milliseconds(kFirstBackOff) * (1 << doubled));
  return Jittered(wait);
}

milliseconds Isolator::Jittered(milliseconds time) {
  std::uniform_int_distribution<std::int64_t> part(-time.count() / 10, time.count() / 10);
  return time + milliseconds(part(random_));
}

IsolationCounts Isolator::Counts() const {
  return {api_->sent(), failed_steps_.value(), told_.value(), limited_.value(), failed_.value()};
}

}  // namespace railhead
