#include "deviceplugin/services/discovery/node_watcher.h"

#include <algorithm>
#include <stop_token>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/inventory/pf_memory.h"
#include "deviceplugin/node/resources/find_allocated.h"
#include "deviceplugin/node/resources/restore_allocated.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/services/discovery/derived_views.h"
#include "deviceplugin/services/discovery/provision_at_start.h"
#include "deviceplugin/services/health/driver_source.h"
#include "deviceplugin/services/health/health_log.h"
#include "deviceplugin/services/health/watched_functions.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

namespace railhead::discovery {
namespace {

// VFs appear one after the other, and a driver that is bound again goes and comes: kubelet does not need the
// states in between. Both take far less than a second.
constexpr std::chrono::milliseconds kQuiet{100};
constexpr std::chrono::milliseconds kLongestSettling{500};
// Reading all of a large node that is busy takes a second.
constexpr std::chrono::seconds kLongestDiscovery{120};
// One step of making VFs is one PF: locks that others hold, its drivers, and the undo.
constexpr std::chrono::minutes kLongestProvision{20};
// Between discoveries while the kernel sends no events: one of a large node costs some 60 ms.
constexpr std::chrono::seconds kResyncWithoutUevents{10};
constexpr std::chrono::seconds kNextTry{10};
// Between two looks for a fabric.
constexpr std::chrono::milliseconds kNoFabricPause{500};

}  // namespace

NodeWatcher::NodeWatcher(Options options, Kernel& kernel, ProbeWorkers& probes, Log* log)
    : options_(std::move(options)),
      kernel_(kernel),
      probes_(probes),
      log_(log),
      uuids_(topology::UuidsOfDriver(options_.root)),
      ddp_(resources::DdpOfKernel(options_.root, probes)),
      resets_(options_.root) {}

NodeWatcher::~NodeWatcher() = default;

void NodeWatcher::Discover() {
  requests_.Add();
  requested_.Set(requests_.value());
}

Result<void> NodeWatcher::Run(Worker& worker) {
  worker_ = &worker;
  requested_.Subscribe(worker);
  AwaitFabric();
  RH_TRY(Provision());
  if (worker.StopRequested()) return {};
  worker.Busy(kLongestDiscovery, "the first discovery of the node");
  RH_TRY(ReadFirst());
  Loop();
  return {};
}

// In a cluster the fabric may come after railheadd, which answers probes meanwhile. Then `railctl fabric
// suggest` can run in its container. Other sources have to be there before.
void NodeWatcher::AwaitFabric() {
  if (options_.fabric_refused == nullptr || options_.source.sriovdp || options_.source.fabric) return;
  options_.fabric_refused->Subscribe(*worker_);
  const auto has_none = [this] {
    return !Exists(options_.root.Path(kFabricPath)) && !Exists(options_.root.Path(kSriovdpConfigPath));
  };
  while (has_none() && !worker_->StopRequested()) {
    ReportStart("waiting for a fabric: " + *options_.fabric_refused->Get());
    worker_->Wait(Clock::now() + kNoFabricPause);
  }
}

void NodeWatcher::ReportStart(const std::string& what) {
  if (*start_.Get() != what) start_.Set(what);
  if (!*answerable_.Get()) answerable_.Set(true);
}

Result<void> NodeWatcher::Provision() {
  std::atomic<bool> stopped{false};
  const std::stop_callback stop(worker_->stop(), [&] { stopped = true; });
  const auto report = [this](const std::string& what) {
    worker_->Busy(kLongestProvision, what);
    ReportStart(what);
  };
  worker_->Busy(kLongestProvision, "comparing the PFs' VFs with the fabric");
  return ProvisionAtStart(options_.root, kernel_, options_.source, {report, &stopped}, log_);
}

// Starts with the last known health, so that kubelet does not see a device become healthy and then unhealthy.
Result<void> NodeWatcher::ReadFirst() {
  events_.emplace(RH_TRY(NodeEvents::Open()));
  // Watched for bound slots: the first attachment must not be the one to make it.
  RH_TRY(MakeStateFolder(options_.root, paths::Locks(options_.root)));
  auto first =
      RH_TRY(ReadNode(options_.root, kernel_, options_.source,
                      [this](const std::string& pf) { return ddp_.Query(pf); }, {&probes_, nullptr}));
  LogFirstReading(log_, first.snapshot);
  // Below another root no driver can be asked.
  const bool on_host = options_.root.prefix().empty();
  health_ = std::make_unique<health::HealthWatch>(
      options_.root, std::move(first.health), on_host ? health::MakeKernelDriverSource : nullptr, probes_);
  withheld_ = WithheldAtFirst(options_.root, first.snapshot);
  node_.Set(std::move(first.snapshot));
  functions_ = WatchedFunctions(snapshot(), health_->All());
  PublishHealth();
  ReportStart("");
  Restore();
  Advertise();
  withheld_.clear();
  return {};
}

// All files that could be the configuration: a fabric may appear where none was before.
std::vector<std::string> NodeWatcher::Files() const {
  const ConfigSource& source = options_.source;
  std::vector<std::string> paths;
  if (source.sriovdp) paths.push_back(*source.sriovdp);
  if (!source.sriovdp) paths.push_back(source.fabric.value_or(kFabricPath));
  if (!source.sriovdp && !source.fabric) paths.emplace_back(kSriovdpConfigPath);
  paths.emplace_back(topology::kTopologyPath);
  paths.emplace_back(health::kDrainsFile.path);
  for (std::string& path : paths) path = options_.root.Path(path);
  // Slots are bound and free again when journal entries come and go.
  const bool late = HasLatePool(snapshot());
  if (late) paths.push_back(paths::Locks(options_.root) + "/");
  // Where kubelet notes that a pod has gone.
  if (!withheld_.empty() || pods_lost_devices_) paths.push_back(paths::KubeletCheckpoint(options_.root));
  return paths;
}

void NodeWatcher::Loop() {
  events_->WatchFiles(Files());
  // Between the first reading and the watch something may have changed.
  DiscoverNode();
  CheckHealth();
  AdvertiseIfChanged();
  discoveries_done_.Add();
  while (!worker_->StopRequested()) {
    events_->WatchFiles(Files());
    auto seen = Wait(std::min(next_discovery_, next_tick_));
    if (seen.hardware || seen.files) Settle();
    if (worker_->StopRequested()) return;
    const auto now = Clock::now();
    if (seen.Any()) health_->ReadAllNow();
    const bool discover = seen.Any() || now >= next_discovery_;
    if (discover) DiscoverNode();
    // Removed devices are advertised before the health check, which slow firmware may delay.
    if (discover && only_lost_) AdvertiseIfChanged();
    if (seen.Any() || now >= next_tick_) CheckHealth();
    AdvertiseIfChanged();
    if (discover) discoveries_done_.Add();
  }
}

NodeEvents::Seen NodeWatcher::Wait(Clock::time_point until) {
  const NodeEvents::Seen seen = events_->Wait(*worker_, until);
  worker_->Busy(kLongestDiscovery, "a discovery of the node, or a check of its health");
  if (seen.hardware) hardware_events_.Add();
  if (seen.files) file_events_.Add();
  return seen;
}

void NodeWatcher::Settle() {
  const auto latest = Clock::now() + kLongestSettling;
  while (!worker_->StopRequested() && Clock::now() < latest) {
    if (!Wait(std::min(Clock::now() + kQuiet, latest)).Any()) return;
  }
}

void NodeWatcher::ReportWarning(const std::string& what, const Error& why) {
  NodeChange change;
  change.warnings.push_back({what, why});
  LogNodeChange(log_, change);
}

void NodeWatcher::Register(MetricRegistry& metrics) {
  metrics.Add(MetricType::kCounter, "railhead_discovery_triggers",
              "Events that caused a discovery of the node, by source", [this](Exposition& page) {
                page.Sample({{"source", "hardware"}}, hardware_events_.value());
                page.Sample({{"source", "files"}}, file_events_.value());
                page.Sample({{"source", "signal"}}, requests_.value());
              });
  metrics.Add(MetricType::kGauge, "railhead_uevents_connected",
              "1 while railheadd gets the kernel's device events; 0: discovery runs every ten seconds",
              [this](Exposition& page) { page.Sample({}, std::uint64_t{uevents_connected_ ? 1U : 0U}); });
  metrics.Add("railhead_discovery_runs", "Discoveries of hardware and configuration", discoveries_done_);
  metrics.Add("railhead_discovery_failures",
              "Discoveries that failed: the configuration is invalid or the node could not be read",
              discovery_failures_);
  metrics.Add(MetricType::kGauge, "railhead_config_ok",
              "1 when the latest discovery succeeded; 0: the last valid configuration stays in use",
              [this](Exposition& page) { page.Sample({}, std::uint64_t{config_ok_ ? 1U : 0U}); });
  metrics.Add(MetricType::kGauge, "railhead_config_last_good_timestamp_seconds",
              "Time of the last discovery that succeeded, in seconds since 1970",
              [this](Exposition& page) { page.Sample({}, last_good_.seconds()); });
  metrics.Add(MetricType::kCounter, "railhead_health_changes",
              "Changes of health rules, by the state that they changed a device to",
              [this](Exposition& page) {
                for (const health::HealthRule rule : health::AllHealthRules()) {
                  const auto index = static_cast<std::size_t>(rule);
                  page.Sample({{"rule", NameOf(rule)}, {"to", "unhealthy"}}, fired_.at(index).value());
                  page.Sample({{"rule", NameOf(rule)}, {"to", "healthy"}}, cleared_.at(index).value());
                }
              });
  metrics.Add(MetricType::kGauge, "railhead_unhealthy_devices",
              "PFs and VFs for which a health rule is active, in a pool or not", [this](Exposition& page) {
                std::array<std::uint64_t, health::kHealthRuleCount> held{};
                const auto health = health_now_.Get();
                for (const health::DeviceHealth& device : health->devices) {
                  std::set<health::HealthRule> rules;
                  for (const health::HealthReason& reason : device.reasons) rules.insert(reason.rule);
                  for (const health::HealthRule rule : rules) ++held.at(static_cast<std::size_t>(rule));
                }
                for (const health::HealthRule rule : health::AllHealthRules())
                  page.Sample({{"rule", NameOf(rule)}}, held.at(static_cast<std::size_t>(rule)));
              });
}

void NodeWatcher::ConnectUevents() {
  events_->ConnectUevents();
  std::optional<Error> error = events_->uevents_error();
  uevents_connected_ = !error;
  const bool another =
      (error ? error->message : std::string()) != (uevents_error_ ? uevents_error_->message : std::string());
  uevents_error_ = std::move(error);
  if (another && uevents_error_) ReportWarning("hardware changes are discovered late", *uevents_error_);
  if (another && !uevents_error_) {
    NodeChange change;
    change.note = "kernel device events are connected again";
    LogNodeChange(log_, change);
  }
}

void NodeWatcher::DiscoverNode() {
  ConnectUevents();
  only_lost_ = false;
  next_discovery_ =
      Clock::now() +
      (events_->uevents_error() ? std::min(options_.resync, kResyncWithoutUevents) : options_.resync);
  discoveries_started_.Add();
  resets_.Refresh();
  std::set<std::string> in_reset = resets_.brief();
  auto now =
      ReadNode(options_.root, kernel_, options_.source,
               [this](const std::string& pf) { return ddp_.Query(pf); }, {&probes_, snapshot().inventory});
  resets_.Refresh();
  in_reset.insert(resets_.brief().begin(), resets_.brief().end());
  if (now && IsTransient(now->snapshot, in_reset)) {
    next_discovery_ = Clock::now() + kQuiet;
    return;
  }
  Apply(std::move(now));
}

bool NodeWatcher::IsTransient(const NodeSnapshot& now, const std::set<std::string>& in_reset) const {
  return std::ranges::any_of(in_reset, [&](const std::string& device) {
    const inventory::NicFunction* before = snapshot().inventory->Find(device);
    const inventory::NicFunction* seen = now.inventory->Find(device);
    return before != nullptr && (seen == nullptr || *seen != *before);
  });
}

void NodeWatcher::Apply(Result<NodeReading> now) {
  config_ok_ = now.has_value();
  if (!now) {
    discovery_failures_.Add();
    if (discovery_error_.IsNew(now.error())) {
      NodeChange failed;
      failed.error = now.error();
      LogNodeChange(log_, failed);
    }
    return;
  }
  last_good_.SetNow();
  const bool recovered = discovery_error_.Clear();
  const NodeChange change = Difference(snapshot(), now->snapshot);
  only_lost_ = OnlyTakesAway(change);
  functions_ = WatchedFunctions(now->snapshot, health_->All());
  if (health_->rules() != now->health) health_->SetRules(std::move(now->health));
  node_.Set(std::move(now->snapshot));
  ddp_.KeepOnly(*snapshot().inventory);
  KeepProbes();
  ReportWarnings();
  RecordPfs();
  Restore();
  changed_ = true;
  if (recovered || !change.resources.empty()) LogNodeChange(log_, change);
}

// A PF that has been left out, since it did not answer, is asked again soon.
void NodeWatcher::KeepProbes() {
  std::set<std::string> pfs;
  for (const inventory::NicFunction& function : snapshot().inventory->All())
    pfs.insert(function.pf.ToString());
  for (const auto& [address, error] : snapshot().inventory->unreadable) {
    if (error.code != ErrorCode::kTimeout) continue;
    pfs.insert(address.ToString());
    next_discovery_ = std::min(next_discovery_, Clock::now() + kNextTry);
  }
  probes_.KeepOnly(pfs);
}

void NodeWatcher::ReportWarnings() {
  std::set<std::string> now;
  const auto node = node_.Get();
  for (const Error& warning : node->warnings) {
    if (now.insert(warning.message).second && !warned_.contains(warning.message))
      ReportWarning("the node has a problem", warning);
  }
  warned_ = std::move(now);
}

void NodeWatcher::RecordPfs() {
  const auto recorded = inventory::PfMemory(options_.root).Remember(*snapshot().inventory);
  if (record_error_.IsNew(recorded)) ReportWarning("resources may lose PFs that pods use", recorded.error());
}

// Before the devices are advertised: kubelet does not call Allocate again after a reboot, which empties the
// directory of device files.
void NodeWatcher::Restore() {
  const auto restored = RestoreAllocated(options_.root, snapshot().pools);
  if (restore_error_.IsNew(restored)) log_->Warning("restoring an allocation failed", restored.error());
}

// Call after the health check; otherwise re-created VFs would inherit the old VFs' faults.
void NodeWatcher::AdvertiseIfChanged() {
  if (!std::exchange(changed_, false)) return;
  auto withheld = FindAllocatedUnderOtherNames(options_.root, snapshot().pools);
  if (std::exchange(withheld_, std::move(withheld)) != withheld_) {
    log_->Info("withheld devices: pods have them under another resource's name",
               {{"devices", Join({withheld_.begin(), withheld_.end()}, ",")}});
  }
  Advertise();
}

void NodeWatcher::Advertise() {
  const auto node = node_.Get();
  Advertisement advertisement = AdvertisementOf(options_.root, *node, *health_, withheld_);
  pods_lost_devices_ = !advertisement.lost.empty();
  binding_view_.Set(ViewOf(options_.root, *node, *health_, withheld_, uuids_));
  advertisement_.Set(std::move(advertisement));
}

void NodeWatcher::PublishHealth() {
  auto devices = health_->All();
  const auto before = health_now_.Get();
  if (before->generation == 0 || before->devices != devices)
    health_now_.Set({before->generation + 1, std::move(devices)});
}

void NodeWatcher::CheckHealth() {
  next_tick_ = Clock::now() + health_->rules().interval;
  const auto in_use = Journal(options_.root).HeldDevices();
  const health::HealthTick tick = health_->Tick(
      functions_, [&](const std::string& id) { return in_use.contains(id); }, health::HealthTime::Now());
  const bool flipped = std::ranges::any_of(tick.changes, &health::HealthChange::flipped);
  changed_ = changed_ || flipped;
  for (const health::HealthChange& change : tick.changes) {
    for (const health::HealthReason& reason : change.started)
      fired_.at(static_cast<std::size_t>(reason.rule)).Add();
    for (const health::HealthReason& reason : change.ended)
      cleared_.at(static_cast<std::size_t>(reason.rule)).Add();
  }
  if (!tick.changes.empty() || !tick.problems.empty()) LogHealth(log_, tick);
  PublishHealth();
}

}  // namespace railhead::discovery
