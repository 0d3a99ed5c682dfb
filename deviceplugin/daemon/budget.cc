#include "deviceplugin/daemon/budget.h"

#include <algorithm>
#include <random>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/address_leasing/leasing_service.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/node_status/rail_states.h"

namespace railhead::daemon {
namespace {

constexpr std::chrono::seconds kInterval{5};
// Other nodes may have given a place back, or this node's place may have been removed.
constexpr std::chrono::seconds kNextTry{30};
constexpr std::chrono::minutes kNextCheck{5};

bool IsBad(const health::ObservedRail& rail) {
  return rail.state == health::ObservedRail::State::kDead ||
         rail.state == health::ObservedRail::State::kImpaired;
}

// Whether probes took the device out of use.
bool IsWithdrawn(const health::DeviceHealth& device) {
  return std::ranges::any_of(device.reasons, [](const health::HealthReason& reason) {
    return reason.rule == health::HealthRule::kUnreachable || reason.rule == health::HealthRule::kImpaired;
  });
}

}  // namespace

Result<void> Budget::Open(const resources::Plan& plan, const KubeService& service) {
  plan_ = plan;
  if (!plan.of_fabric) return {};
  const auto leases = RH_TRY(address_leasing::PlanLeases(root_, plan.config_path));
  if (!leases) return {};
  const auto [type, settings] = address_leasing::StoreOf(leases->store);
  store_ = RH_TRY(address_leasing::MakeClusterStore(root_, type, settings, plan.config_path, service));
  places_ = std::make_unique<node_status::DisruptionBudget>(
      *store_, leases->settings.node, [random = std::mt19937_64(std::random_device{}())](auto below) mutable {
        return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random);
      });
  return {};
}

void Budget::Start(Sources sources) {
  sources_ = std::move(sources);
  if (store_ != nullptr)
    loop_ = std::make_unique<PassLoop>(kInterval, PassLoop::Pass{[this] { Step(); }, [] {}});
}

void Budget::SetPlan(const resources::Plan& plan) {
  const std::lock_guard lock(mutex_);
  plan_ = plan;
}

std::optional<health::ObservedRail> Budget::Admit(const std::string& pf) const {
  auto rail = rails_.Of(pf);
  if (!rail || !IsBad(*rail) || store_ == nullptr || held_) return rail;
  return health::ObservedRail{};
}

bool Budget::MayTaint(bool wanted) {
  taint_wanted_ = wanted;
  return store_ == nullptr || held_;
}

// A place that an earlier process took is kept as long as it is needed.
void Budget::Step() {
  if (sources_.is_standby()) return;
  const bool needed = IsNeeded();
  if (needed && Clock::now() >= next_try_) Acquire();
  if (!needed && !released_) Release();
  refused_ = needed && !held_;
}

bool Budget::IsNeeded() const {
  if (taint_wanted_) return true;
  const auto health = sources_.health();
  return std::ranges::any_of(health, IsWithdrawn) || (rails_.AnyIs(IsBad) && ProbesWithdraw());
}

// Whether a health rule takes devices out of use because of probes.
bool Budget::ProbesWithdraw() const {
  const std::lock_guard lock(mutex_);
  const auto rules = health::ParseHealthRules(plan_.health, plan_.config_path);
  return rules && (rules->Of(health::HealthRule::kUnreachable).enabled ||
                   rules->Of(health::HealthRule::kImpaired).enabled);
}

// nullopt: the fabric is broken, which others report.
std::optional<Budget::Settings> Budget::ReadSettings() const {
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    path = plan_.config_path;
  }
  const auto fabric = ReadFabric(root_, path);
  if (!fabric || !*fabric) return std::nullopt;
  const auto settings =
      node_status::ParseNodeStatusSettings((*fabric)->node_status, path, (*fabric)->rails.size());
  if (!settings) return std::nullopt;
  return Settings{settings->max_unavailable, (*fabric)->nodes.size()};
}

void Budget::Acquire() {
  const auto settings = ReadSettings();
  if (!settings) return;
  released_ = false;
  const auto taken = places_->Acquire(settings->most, settings->nodes);
  next_try_ = Clock::now() + (taken.value_or(false) ? std::chrono::seconds(kNextCheck) : kNextTry);
  Complain(taken ? Result<void>{} : Result<void>(Fail(taken.error())));
  if (taken) SetState(*taken ? State::kHeld : State::kRefused);
}

void Budget::Release() {
  const auto released = places_->Release();
  released_ = released.has_value();
  next_try_ = {};
  Complain(released);
  if (released_) SetState(State::kFree);
}

void Budget::SetState(State state) {
  const auto usage = places_->usage();
  {
    const std::lock_guard lock(mutex_);
    usage_ = usage;
  }
  held_ = state == State::kHeld;
  const State before = std::exchange(state_, state);
  if (before == state) return;
  sources_.changed();
  if (!usage) return;
  const Log::Fields fields = {{"used", std::to_string(usage->used)}, {"limit", std::to_string(usage->limit)}};
  switch (state) {
    case State::kHeld:
      return log_->Info("this node has a place in the disruption budget and may go out of use", fields);
    case State::kRefused:
      return log_->Warning(
          "unhealthy rails stay in use: the disruption budget (nodeStatus.maxUnavailable) is used up",
          fields);
    case State::kFree:
      return log_->Info("this node has given its place in the disruption budget back", fields);
  }
}

void Budget::Complain(const Result<void>& done) {
  const std::string problem = done ? "" : done.error().message;
  if (std::exchange(known_problem_, problem) == problem || done) return;
  log_->Warning("reading the disruption budget failed; retrying", done.error());
}

void Budget::Stop() {
  if (loop_) loop_->Stop();
}

bool Budget::AwaitEnd(std::chrono::milliseconds limit) {
  return !loop_ || loop_->AwaitEnd(limit);
}

void Budget::Append(Exposition* page) const {
  std::optional<node_status::DisruptionBudget::Usage> usage;
  {
    const std::lock_guard lock(mutex_);
    usage = usage_;
  }
  page->Begin(MetricType::kGauge, "railhead_node_status_budget_used",
              "Nodes out of use when this node last asked for a place in the disruption budget");
  if (usage) page->Sample({}, usage->used);
  page->Begin(MetricType::kGauge, "railhead_node_status_budget_limit",
              "Nodes that may be out of use at the same time, as of then");
  if (usage) page->Sample({}, usage->limit);
  page->Begin(MetricType::kGauge, "railhead_node_status_withheld",
              "1 while this node should be out of use but has no place in the disruption budget");
  if (store_ != nullptr) page->Sample({}, std::uint64_t{refused_ ? 1U : 0U});
}

}  // namespace railhead::daemon
