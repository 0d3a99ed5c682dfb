#include "deviceplugin/daemon/node_watcher.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/services/health/watch.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"

namespace railhead::daemon {
namespace {

// VFs appear one after the other, and a driver that is bound again goes and comes: kubelet does not need the
// states in between. Both take far less than a second.
constexpr std::chrono::milliseconds kQuiet{100};
constexpr std::chrono::milliseconds kLongestSettling{500};
// Reading all of a large node that is busy takes a second.
constexpr std::chrono::seconds kLongestDiscovery{120};
// Between discoveries while the kernel sends no events: one of a large node costs some 60 ms.
constexpr std::chrono::seconds kResyncWithoutUevents{10};
constexpr std::chrono::seconds kNextTry{10};

std::map<std::string, std::set<std::string>> DevicesOf(const resources::Plan& plan) {
  std::map<std::string, std::set<std::string>> devices;
  for (const auto& pool : plan.pools) {
    auto& ids = devices[pool->spec.resource];
    for (const resources::PoolMember& member : pool->members) ids.insert(member.function.id);
  }
  return devices;
}

std::vector<std::string> Without(const std::set<std::string>& all, const std::set<std::string>& these) {
  std::vector<std::string> others;
  std::set_difference(all.begin(), all.end(), these.begin(), these.end(), std::back_inserter(others));
  return others;
}

// Whether no device was added. The health of an added device must be checked first.
bool OnlyTakesAway(const PlanChange& change) {
  return !change.resources.empty() && std::ranges::all_of(change.resources, [](const auto& resource) {
    return resource.second.added.empty();
  });
}

bool HasLatePool(const resources::Plan& plan) {
  return std::ranges::any_of(plan.pools, [](const auto& pool) { return pool->spec.late; });
}

// Topology is only a reason to prefer a device: without it any device will do.
late_binding::BindingView ViewOf(const Root& root, const resources::Plan& plan,
                                 const health::HealthWatch* health, const std::set<std::string>& withheld,
                                 const topology::AcceleratorIds::UuidLookup& uuids) {
  late_binding::BindingView view;
  view.pools = plan.pools;
  view.unhealthy = withheld;
  for (const auto& pool : plan.pools) {
    for (const resources::PoolMember& member : pool->members) {
      if (health != nullptr && !health->IsHealthy(member.function.id))
        view.unhealthy.insert(member.function.id);
    }
  }
  const auto config = topology::ReadTopologyConfig(root);
  if (!config) return view;
  const auto topology = topology::Topology::Read(root, *plan.inventory, *config);
  if (!topology) return view;
  view.topology = *topology;
  view.accelerators =
      std::make_shared<const topology::AcceleratorIds>(IdsOf(root, **topology, *config, uuids));
  return view;
}

}  // namespace

PlanChange Difference(const resources::Plan& before, const resources::Plan& now) {
  auto old_devices = DevicesOf(before);
  auto new_devices = DevicesOf(now);
  PlanChange change;
  for (const auto& [resource, ids] : new_devices) {
    const auto old = old_devices.find(resource);
    const bool is_new = old == old_devices.end();
    auto added = Without(ids, is_new ? std::set<std::string>{} : old->second);
    auto removed = Without(is_new ? std::set<std::string>{} : old->second, ids);
    if (is_new || !added.empty() || !removed.empty())
      change.resources[resource] = {std::move(added), std::move(removed)};
  }
  for (const auto& [resource, ids] : old_devices) {
    if (!new_devices.contains(resource)) change.resources[resource] = {{}, {ids.begin(), ids.end()}};
  }
  return change;
}

kubelet::Advertisement AdvertisementOf(const Root& root, const resources::Plan& plan,
                                       const health::HealthWatch* health, const resources::BoundSlots& bound,
                                       const std::set<std::string>& withheld) {
  kubelet::Advertisement advertisement;
  auto unhealthy = std::make_shared<std::set<std::string>>();
  for (const auto& devices : plan.pools) {
    auto pool = devices->spec.late ? SlotPool(*devices, bound) : devices;
    for (const resources::PoolMember& member : pool->members) {
      // A slot has the health of its device.
      const std::string device = devices->spec.late ? member.function.address.ToString() : member.function.id;
      const bool healthy = health == nullptr || health->IsHealthy(device);
      if (!healthy || withheld.contains(device)) unhealthy->insert(member.function.id);
    }
    advertisement.pools.push_back(std::move(pool));
  }
  advertisement.unhealthy = std::move(unhealthy);
  advertisement.lost = FindAllocatedAndLost(root, advertisement.pools);
  return advertisement;
}

Result<std::unique_ptr<NodeWatcher>> NodeWatcher::Start(Options options, Kernel& kernel, ProbeWorkers& probes,
                                                        resources::Plan first,
                                                        std::unique_ptr<health::HealthWatch> health,
                                                        Calls calls) {
  NodeEvents events = RH_TRY(NodeEvents::Open());
  // Watched for bound slots: the first attachment must not be the one to make it.
  RH_TRY(MakeStateFolder(options.root, paths::Locks(options.root)));
  // Bindings may be requested as soon as kubelet has the first advertisement.
  calls.view_changed(ViewOf(options.root, first, health.get(), {}, topology::UuidsOfDriver(options.root)));
  return std::unique_ptr<NodeWatcher>(new NodeWatcher(std::move(options), kernel, probes, std::move(first),
                                                      std::move(health), std::move(calls),
                                                      std::move(events)));
}

NodeWatcher::NodeWatcher(Options options, Kernel& kernel, ProbeWorkers& probes, resources::Plan first,
                         std::unique_ptr<health::HealthWatch> health, Calls calls, NodeEvents events)
    : options_(std::move(options)),
      kernel_(kernel),
      probes_(probes),
      plan_(std::move(first)),
      functions_(WatchedFunctions(plan_, health ? health->All() : std::vector<health::DeviceHealth>{})),
      health_(std::move(health)),
      uuids_(topology::UuidsOfDriver(options_.root)),
      calls_(std::move(calls)),
      ddp_(resources::DdpOfKernel(options_.root, probes)),
      resets_(options_.root),
      events_(std::move(events)),
      thread_([this] {
        Loop();
        ended_.set_value();
      }) {}

NodeWatcher::~NodeWatcher() {
  Stop();
  thread_.join();
}

void NodeWatcher::Stop() {
  stopping_ = true;
  events_.Wake();
}

// All files that could be the configuration: a fabric may appear where none was before.
std::vector<std::string> NodeWatcher::Files() const {
  const resources::ConfigSource& source = options_.source;
  std::vector<std::string> paths;
  if (source.sriovdp) paths.push_back(*source.sriovdp);
  if (!source.sriovdp) paths.push_back(source.fabric.value_or(kFabricPath));
  if (!source.sriovdp && !source.fabric) paths.emplace_back(resources::kSriovdpConfigPath);
  paths.emplace_back(topology::kTopologyPath);
  paths.emplace_back(health::kDrainsFile.path);
  for (std::string& path : paths) path = options_.root.Path(path);
  // Slots are bound and free again when journal entries come and go.
  const bool late = HasLatePool(plan_);
  if (late) paths.push_back(paths::Locks(options_.root) + "/");
  // Where kubelet notes that a pod has gone.
  if (!withheld_.empty() || pods_lost_devices_) paths.push_back(paths::KubeletCheckpoint(options_.root));
  return paths;
}

void NodeWatcher::Loop() {
  events_.WatchFiles(Files());
  // Between the first plan and the watch something may have changed.
  DiscoverNode();
  CheckHealth();
  AdvertiseIfChanged();
  options_.activity->node.discoveries_done.Add();
  while (!stopping_) {
    events_.WatchFiles(Files());
    const auto seen = Wait(std::min(next_discovery_, next_tick_));
    if (seen.hardware || seen.files) Settle();
    if (stopping_) return;
    const auto now = Clock::now();
    if (seen.Any() && health_) health_->ReadAllNow();
    const bool discover = seen.Any() || now >= next_discovery_;
    if (discover) DiscoverNode();
    // Removed devices are advertised before the health check, which slow firmware may delay.
    if (discover && only_lost_) AdvertiseIfChanged();
    if (seen.Any() || now >= next_tick_) CheckHealth();
    AdvertiseIfChanged();
    if (discover) options_.activity->node.discoveries_done.Add();
  }
}

NodeEvents::Seen NodeWatcher::Wait(Clock::time_point until) {
  Heartbeat& heartbeat = options_.activity->heartbeats.node_watcher;
  heartbeat.Within(std::max(until - Clock::now(), Clock::duration::zero()) + kLongestDiscovery);
  const NodeEvents::Seen seen = events_.Wait(until);
  heartbeat.Within(kLongestDiscovery);
  NodeActivity& counts = options_.activity->node;
  if (seen.hardware) counts.hardware_events.Add();
  if (seen.files) counts.file_events.Add();
  return seen;
}

void NodeWatcher::Settle() {
  const auto latest = Clock::now() + kLongestSettling;
  while (!stopping_ && Clock::now() < latest) {
    if (!Wait(std::min(Clock::now() + kQuiet, latest)).Any()) return;
  }
}

void NodeWatcher::ReportWarning(const std::string& what, const Error& why) {
  PlanChange change;
  change.warnings.push_back({what, why});
  calls_.plan_changed(change);
}

void NodeWatcher::ConnectUevents() {
  events_.ConnectUevents();
  std::optional<Error> error = events_.uevents_error();
  options_.activity->node.uevents_connected = !error;
  const bool another =
      (error ? error->message : std::string()) != (uevents_error_ ? uevents_error_->message : std::string());
  uevents_error_ = std::move(error);
  if (another && uevents_error_) ReportWarning("hardware changes are discovered late", *uevents_error_);
  if (another && !uevents_error_) {
    PlanChange change;
    change.note = "kernel device events are connected again";
    calls_.plan_changed(change);
  }
}

void NodeWatcher::DiscoverNode() {
  ConnectUevents();
  only_lost_ = false;
  next_discovery_ = Clock::now() + (events_.uevents_error() ? std::min(options_.resync, kResyncWithoutUevents)
                                                            : options_.resync);
  NodeActivity& counts = options_.activity->node;
  counts.discoveries_started.Add();
  resets_.Refresh();
  std::set<std::string> in_reset = resets_.brief();
  auto now = PlanNode(options_.root, kernel_, options_.source,
                      [this](const std::string& pf) { return ddp_.Query(pf); }, {&probes_, plan_.inventory});
  resets_.Refresh();
  in_reset.insert(resets_.brief().begin(), resets_.brief().end());
  if (now && IsTransient(now->plan, in_reset)) {
    next_discovery_ = Clock::now() + kQuiet;
    return;
  }
  SetPlan(std::move(now));
}

bool NodeWatcher::IsTransient(const resources::Plan& now, const std::set<std::string>& in_reset) const {
  return std::ranges::any_of(in_reset, [&](const std::string& device) {
    const inventory::NicFunction* before = plan_.inventory->Find(device);
    const inventory::NicFunction* seen = now.inventory->Find(device);
    return before != nullptr && (seen == nullptr || *seen != *before);
  });
}

void NodeWatcher::SetPlan(Result<NodePlan> now) {
  NodeActivity& counts = options_.activity->node;
  counts.config_ok = now.has_value();
  if (now) {
    counts.last_good.SetNow();
  } else {
    counts.discovery_failures.Add();
    if (std::exchange(last_error_, now.error().message) != now.error().message) {
      PlanChange failed;
      failed.error = now.error();
      calls_.plan_changed(failed);
    }
    return;
  }
  const bool recovered = !std::exchange(last_error_, std::string()).empty();
  const PlanChange change = Difference(plan_, now->plan);
  plan_ = std::move(now->plan);
  functions_ = WatchedFunctions(plan_, health_ ? health_->All() : std::vector<health::DeviceHealth>{});
  only_lost_ = OnlyTakesAway(change);
  if (calls_.plan_made) calls_.plan_made(plan_);
  if (health_ && health_->rules() != now->health) health_->SetRules(std::move(now->health));
  ddp_.KeepOnly(*plan_.inventory);
  KeepProbes();
  ReportWarnings();
  RecordPfs();
  Restore();
  changed_ = true;
  if (recovered || !change.resources.empty()) calls_.plan_changed(change);
}

// A PF that has been left out, since it did not answer, is asked again soon.
void NodeWatcher::KeepProbes() {
  std::set<std::string> pfs;
  for (const inventory::NicFunction& function : plan_.inventory->All()) pfs.insert(function.pf.ToString());
  for (const auto& [address, error] : plan_.inventory->unreadable) {
    if (error.code != ErrorCode::kTimeout) continue;
    pfs.insert(address.ToString());
    next_discovery_ = std::min(next_discovery_, Clock::now() + kNextTry);
  }
  probes_.KeepOnly(pfs);
}

void NodeWatcher::ReportWarnings() {
  std::set<std::string> now;
  for (const Error& warning : plan_.warnings) {
    if (now.insert(warning.message).second && !warned_.contains(warning.message))
      ReportWarning("the node has a problem", warning);
  }
  warned_ = std::move(now);
}

void NodeWatcher::RecordPfs() {
  const auto recorded = RememberPfs(options_.root, *plan_.inventory);
  const std::string error = recorded ? std::string() : recorded.error().message;
  const bool another = std::exchange(last_record_error_, error) != error;
  if (another && !recorded) ReportWarning("resources may lose PFs that pods use", recorded.error());
}

// Before the devices are advertised: kubelet does not call Allocate again after a reboot.
void NodeWatcher::Restore() {
  const auto restored = RestoreAllocated(options_.root, plan_.pools);
  const std::string error = restored ? std::string() : restored.error().message;
  const bool another = std::exchange(last_restore_error_, error) != error;
  if (another && !restored) calls_.restore_failed(restored.error());
}

// Call after the health check; otherwise re-created VFs would inherit the old VFs' faults.
void NodeWatcher::AdvertiseIfChanged() {
  if (!std::exchange(changed_, false)) return;
  auto withheld = FindAllocatedUnderOtherNames(options_.root, plan_.pools);
  if (std::exchange(withheld_, std::move(withheld)) != withheld_) calls_.withheld_changed(withheld_);
  const bool late = HasLatePool(plan_);
  const auto bound = late ? resources::ReadBoundSlots(options_.root) : resources::BoundSlots{};
  kubelet::Advertisement advertisement =
      AdvertisementOf(options_.root, plan_, health_.get(), bound, withheld_);
  pods_lost_devices_ = !advertisement.lost.empty();
  calls_.advertise(std::move(advertisement));
  calls_.view_changed(ViewOf(options_.root, plan_, health_.get(), withheld_, uuids_));
}

void NodeWatcher::CheckHealth() {
  if (!health_) {
    next_tick_ = Clock::time_point::max();
    return;
  }
  next_tick_ = Clock::now() + health_->rules().interval;
  const auto in_use = Journal(options_.root).HeldDevices();
  const health::HealthTick tick = health_->Tick(
      functions_, [&](const std::string& id) { return in_use.contains(id); }, health::HealthTime::Now());
  const bool flipped = std::ranges::any_of(tick.changes, &health::HealthChange::flipped);
  changed_ = changed_ || flipped;
  if (!tick.changes.empty() || !tick.problems.empty()) calls_.health_changed(tick);
}

}  // namespace railhead::daemon
