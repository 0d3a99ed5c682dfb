// Advertiser: keeps what kubelet is offered in step with the node and its configuration.
//
// VFs made or removed, drivers bound, PFs renamed, a configuration file replaced: it looks
// again when something has happened and has settled for a moment, when
// it is asked to, and every `resync` in case that an event got lost, or every ten seconds while
// the kernel tells no events. What a reset between two pods shows of a device for a moment
// changes nothing. A configuration that is
// broken by then changes nothing: the last good one goes on, and the report says why. The
// health of what is offered is looked at in between, by the clock of health/watch.h.
//
// Ownership: borrows the kernel. Threads: a thread of its own, which calls all of Calls;
// Look() and Stop() from any.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/railheadd.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/watch.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/late_binding/binder.h"
#include "deviceplugin/support/worker/worker.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::daemon {

// What one look has found to be different.
struct PlanChange {
  struct Devices {
    std::vector<std::string> added;  // ids, sorted
    std::vector<std::string> removed;
  };
  std::map<std::string, Devices> resources;  // by name; those that have changed
  std::optional<Error> error;                // the plan could not be made: nothing has changed
  // Told by themselves, once: what is not as it should be and does not stop the plan, and the end
  // of such a thing.
  struct Warning {
    std::string what;
    Error why;
  };
  std::vector<Warning> warnings;
  std::string note;
};

PlanChange Difference(const resources::Plan& before, const resources::Plan& now);

// With the devices that `health` (nullptr: nothing is known) takes for unhealthy, and those that a
// pod has under another name (`withheld`); of pools with late binding, the slots.
kubelet::Offer OfferOf(const resources::Plan& plan, const health::HealthWatch* health,
                       const resources::BoundSlots& bound, const std::set<std::string>& withheld);

class Advertiser {
 public:
  struct Options {
    Root root;
    resources::ConfigSource source;
    std::chrono::seconds resync{60};
    Activity* activity = nullptr;  // borrowed: counts, and how its thread is
  };
  struct Calls {
    std::function<void(kubelet::Offer)> give;
    // Of warnings and notes, of looks that found a difference, of errors when they are other ones than
    // before, and of the first look without one after that.
    std::function<void(const PlanChange&)> plan_changed;
    // Of what Allocate had written and could not be written again, when it is another error than
    // before.
    std::function<void(const Error&)> restore_failed;
    // The devices that are not given out since a pod has them under another resource's name: when
    // they are others than before.
    std::function<void(const std::set<std::string>&)> withheld;
    // After every look, for who binds slots and who guesses the pod's accelerators.
    std::function<void(late_binding::BindingView)> view;
    // After every look that made a plan; may be empty.
    std::function<void(const resources::Plan&)> planned;
    // Of every look at health that found something.
    std::function<void(const health::HealthTick&)> health_changed;
  };

  // kIo when it has no descriptors to wait on. `health` may be nullptr: all is healthy.
  static Result<std::unique_ptr<Advertiser>> Start(Options options, Kernel& kernel, resources::Plan first,
                                                   std::unique_ptr<health::HealthWatch> health, Calls calls);
  Advertiser(const Advertiser&) = delete;
  Advertiser& operator=(const Advertiser&) = delete;
  ~Advertiser();

  // Soon; does not wait for it.
  void Look() { events_.Wake(); }
  void Stop();
  // Of all that may be given out, as of the last look at it; from any thread.
  [[nodiscard]] std::vector<health::DeviceHealth> Health() const {
    return health_ ? health_->All() : std::vector<health::DeviceHealth>{};
  }

 private:
  using Clock = NodeEvents::Clock;

  Advertiser(Options options, Kernel& kernel, resources::Plan first,
             std::unique_ptr<health::HealthWatch> health, Calls calls, NodeEvents events);
  void Loop();
  void Settle();
  void Tell(const std::string& what, const Error& why);
  void FollowHardware();
  void LookAtNode();
  // Whether it shows a device in the middle of a reset.
  [[nodiscard]] bool IsOfMoment(const resources::Plan& now, const std::set<std::string>& in_reset) const;
  void Take(Result<NodePlan> now);
  void Warn();
  void Remember();
  void Restore();
  void LookAtHealth();
  void GiveIfChanged();
  [[nodiscard]] std::vector<std::string> Files() const;
  NodeEvents::Seen Wait(Clock::time_point until);

  const Options options_;
  Kernel& kernel_;
  resources::Plan plan_;
  std::vector<inventory::NicFunction> functions_;  // of plan_: WatchedFunctions()
  const std::unique_ptr<health::HealthWatch> health_;
  const topology::AcceleratorIds::UuidLookup uuids_;
  const Calls calls_;
  resources::DdpMemory ddp_;
  health::OngoingResets resets_;
  std::set<std::string> warned_;
  std::optional<Error> blind_;
  std::string last_error_;
  std::string last_memory_error_;
  std::string last_restore_error_;
  std::set<std::string> withheld_;
  bool changed_ = false;    // since what was given last
  bool only_lost_ = false;  // by the last look
  Clock::time_point next_look_;
  Clock::time_point next_tick_;
  NodeEvents events_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead::daemon
