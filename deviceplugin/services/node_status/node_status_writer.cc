#include "deviceplugin/services/node_status/node_status_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "deviceplugin/services/node_status/health_events.h"
#include "deviceplugin/services/node_status/node_api.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/services/node_status/rails_taint.h"

namespace railhead::node_status {
namespace {

using std::chrono::milliseconds;

constexpr int kTaintTries = 3;
// Further events would be too old when they are sent.
constexpr std::size_t kMostWaiting = 50;

// Another try may succeed.
bool IsTransient(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

void Note(Result<void> done, NodeStatusOutcome* outcome) {
  if (!done && !outcome->problem) outcome->problem = std::move(done.error());
}

}  // namespace

NodeStatusWriter::NodeStatusWriter(NodeStatusSettings settings, std::unique_ptr<NodeApi> api,
                                   std::uint64_t seed)
    : settings_(std::move(settings)), api_(std::move(api)), random_(seed) {}

NodeStatusOutcome NodeStatusWriter::Step(const NodeStatus& status, Steady now, System wall) {
  NodeStatusOutcome outcome;
  node_.reset();
  QueueEvents(status, now);
  const bool beat = !beat_ || now >= *beat_;
  if (settings_.taint) {
    const bool wanted = WantsTaint(*settings_.taint, status.rails);
    if (tainted_ != wanted || (beat && settings_.taint->wanted))
      Note(SettleTaint(wanted, &outcome), &outcome);
  }
  if (settings_.node_condition) {
    const RailsCondition condition = ConditionOf(status.rails);
    if (condition_ != condition || beat) Note(SettleCondition(condition, wall, &outcome), &outcome);
  }
  Note(SendEvents(wall), &outcome);
  if (outcome.problem) {
    failed_updates_.Add();
    outcome.wait = BackOff();
    return outcome;
  }
  failures_ = 0;
  if (beat) beat_ = now + Jittered(kHeartbeat);
  outcome.wait = std::chrono::ceil<milliseconds>(*beat_ - now);
  return outcome;
}

void NodeStatusWriter::QueueEvents(const NodeStatus& status, Steady now) {
  if (!settings_.events) return;
  const auto before = std::exchange(devices_, status.devices);
  const auto rails = std::exchange(rails_, status.rails);
  const std::string refused = std::exchange(fabric_refused_, status.fabric_refused);
  // After a start it is unknown which events the cluster has.
  if (!before) return;
  auto events = EventsBetween(*before, status);
  std::ranges::move(EventsOfProbes(rails, status.rails), std::back_inserter(events));
  if (!status.fabric_refused.empty() && status.fabric_refused != refused)
    events.push_back(EventOfRefusedFabric(status.fabric_refused));
  for (HealthEvent& event : events) {
    if (!gate_.Take(event, now)) {
      events_limited_.Add();
      continue;
    }
    events_.push_back(std::move(event));
  }
  for (; events_.size() > kMostWaiting; events_.pop_front()) events_failed_.Add();
}

Result<NodeObject*> NodeStatusWriter::Node() {
  if (!node_) node_ = RH_TRY(api_->Read());
  return &*node_;
}

Result<void> NodeStatusWriter::SettleTaint(bool wanted, NodeStatusOutcome* outcome) {
  Result<void> written;
  for (int i = 0; i < kTaintTries; ++i) {
    const NodeObject* node = RH_TRY(Node());
    const auto taints =
        ChangedTaints(node->taints, wanted ? std::string(WordOf(settings_.taint->effect)) : "");
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

Result<void> NodeStatusWriter::SettleCondition(const RailsCondition& condition, System wall,
                                               NodeStatusOutcome* outcome) {
  const NodeObject* node = RH_TRY(Node());
  const bool changed = node->condition != (condition.ready ? "True" : "False");
  RH_TRY(api_->WriteCondition(condition, wall, changed));
  if (std::exchange(condition_, condition) != condition) outcome->condition = condition;
  return {};
}

Result<void> NodeStatusWriter::SendEvents(System wall) {
  while (!events_.empty()) {
    auto created = api_->Create(events_.front(), wall);
    if (!created && IsTransient(created.error())) return created;
    (created ? events_sent_ : events_failed_).Add();
    events_.pop_front();
    if (!created) return created;
  }
  return {};
}

milliseconds NodeStatusWriter::BackOff() {
  const int doubled = std::min(failures_++, 10);
  const milliseconds wait =
      std::min<milliseconds>(kMostBackOff, milliseconds(kFirstBackOff) * (1 << doubled));
  return Jittered(wait);
}

milliseconds NodeStatusWriter::Jittered(milliseconds time) {
  std::uniform_int_distribution<std::int64_t> part(-time.count() / 10, time.count() / 10);
  return time + milliseconds(part(random_));
}

NodeStatusCounts NodeStatusWriter::Counts() const {
  return {api_->sent(), failed_updates_.value(), events_sent_.value(), events_limited_.value(),
          events_failed_.value()};
}

}  // namespace railhead::node_status
